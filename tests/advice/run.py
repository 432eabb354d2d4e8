"""`python -m tests.advice.run --out FOLDER`: judges and profiles the planted kernels on a GPU.

One file a kernel, written as soon as it is known. What lies in FOLDER without an error is not run
again, so a run that was cut short goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from evaluator.builder.builder import Builder
from evaluator.errors import InfrastructureError
from evaluator.evaluation import Evaluation, EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.hardware.cores import usable_cores
from evaluator.hardware.devices import describe
from evaluator.ipc.build_request import BuildOutcome
from problems.cache_folder import cache_folder
from tests.advice.case import SIDES
from tests.advice.job import Job
from tests.advice.planted import CASES
from tests.advice.result import Result, Role, stored
from tools.profile import profile

DEVICE = "cuda:0"
TIMING_SECONDS = 0.3
_PROFILERS = 2
"""Nsight Compute runs once at a time (its lock); reading its report overlaps with the next."""


def main() -> None:
    """Run what is asked for and not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="cases, both sides of each")
    parser.add_argument("--limit-s", type=float, default=float("inf"), help="nothing begins later")
    parser.add_argument("--again", action="store_true", help="also what is there")
    arguments = parser.parse_args()
    names = [case.name for case in CASES]
    if unknown := set(arguments.only or ()) - set(names):
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    there = {} if arguments.again else stored(arguments.out)
    jobs = [
        case.job(side, DEVICE, TIMING_SECONDS)
        for case in CASES
        for side in SIDES
        if not arguments.only or case.name in arguments.only
    ]
    run(waiting(jobs, there), arguments.out, time.monotonic() + arguments.limit_s)


def waiting(jobs: list[Job], there: dict[tuple[str, Role], Result]) -> list[Job]:
    """Those that have no result of this very source without an error."""
    return [job for job in jobs if not _is_done(job, there.get((job.case, job.side)))]


def _is_done(job: Job, result: Result | None) -> bool:
    candidate = job.request.candidate.hash
    return result is not None and not result.error and result.candidate == candidate


def run(asked: list[Job], out: Path, end: float) -> None:
    """Build all at once, judge one after the other, profile each while the next are judged."""
    begin = time.monotonic()
    builder = Builder(cache_folder(), cuda_arch=describe(DEVICE).cuda_architecture)
    builders = ThreadPoolExecutor(usable_cores())
    profilers = ThreadPoolExecutor(_PROFILERS)
    builds = [builders.submit(builder.build, job.build) if job.build else None for job in asked]
    left = 0
    try:
        with LocalExecutor(DEVICE) as executor:
            profiles: list[Future[None]] = []
            for job, build in zip(asked, builds, strict=True):
                if time.monotonic() > end:
                    left += 1
                    continue
                result, evaluation = _judged(job, build, executor)
                _write(out, result)
                if evaluation is None or evaluation.status is not Status.CORRECT:
                    _tell(result)
                    continue
                if len(profiles) >= 2 * _PROFILERS:
                    # Not too far ahead, or the end of the time would find many without a profile.
                    profiles[-2 * _PROFILERS].result()
                profiles.append(
                    profilers.submit(_profile, result, job.request, evaluation, out, end)
                )
            for future in profiles:
                future.result()
    finally:
        builders.shutdown(cancel_futures=True)
        profilers.shutdown(cancel_futures=True)
    print(f"{len(asked) - left} run in {time.monotonic() - begin:.0f} s, {left} left", flush=True)


def _judged(
    job: Job, build: Future[BuildOutcome] | None, executor: LocalExecutor
) -> tuple[Result, Evaluation | None]:
    evaluation, error, built_s = None, "", 0.0
    begin = time.monotonic()
    try:
        built_s = build.result().seconds if build else 0.0
        begin = time.monotonic()
        evaluation = executor.evaluate(job.request)
    except InfrastructureError as failure:
        error = f"{type(failure).__name__}: {failure}"
    kept = None
    if evaluation is not None:
        build_log = {"build": {"log"}} if evaluation.status is Status.CORRECT else {}
        kept = evaluation.model_dump(mode="json", by_alias=True, exclude=build_log or None)
    result = Result(
        case=job.case,
        side=job.side,
        candidate=job.request.candidate.hash,
        evaluation=kept,
        error=error or ("not profiled" if kept and kept["status"] == Status.CORRECT else ""),
        seconds={"build": built_s, "judge": time.monotonic() - begin},
    )
    return result, evaluation


def _profile(
    result: Result, request: EvaluationRequest, evaluation: Evaluation, out: Path, end: float
) -> None:
    if time.monotonic() > end:
        return
    begin = time.monotonic()
    changes: dict[str, object] = {"error": ""}
    with tempfile.TemporaryDirectory() as name:
        try:
            found = profile(request, evaluation, keep=Path(name))
            changes["profile"] = found.model_dump(mode="json")
        except Exception:  # noqa: BLE001 (the figures of the other kernels are worth keeping)
            changes["error"] = traceback.format_exc()
        collected = Path(name) / "collected.json"
        if collected.is_file():
            changes["collected"] = json.loads(collected.read_text())
    changes["seconds"] = result.seconds | {"profile": time.monotonic() - begin}
    finished = result.model_copy(update=changes)
    _write(out, finished)
    _tell(finished)


def _write(out: Path, result: Result) -> None:
    path = out / f"{result.case}.{result.side}.json"
    draft = path.with_suffix(".draft")
    draft.write_text(result.model_dump_json(indent=1) + "\n")
    draft.replace(path)


def _tell(result: Result) -> None:
    seconds = " ".join(f"{name} {value:.1f}" for name, value in result.seconds.items())
    told = result.error.strip().rpartition("\n")[2]
    if result.profile is not None:
        rules = [f"{piece['rule']} {piece['gain']:.0%}" for piece in result.profile["advice"]]
        told = f"{result.profile['rung']}: {', '.join(rules) or 'no advice'}"
    elif result.evaluation and result.status != Status.CORRECT:
        told = f"{result.evaluation['reason']}: {result.evaluation['message'][:300]}"
    latency = f"{result.latency_us:9.1f} us" if result.latency_us else " " * 12
    print(f"{result.case:22} {result.side:8} {result.status:8} {latency} [{seconds}] {told}",
          flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
