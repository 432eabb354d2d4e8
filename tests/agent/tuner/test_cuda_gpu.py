"""Every problem that the tuner claims, at the sizes of a large GPU, judged on one.

The default schedule, a fast one, and three drawn from those without risk. All are built beforehand,
as many at once as there are cores, into the cache that the judge then finds them in. A table is
printed as it grows (`pytest -m gpu -s`); a list of failures ends it.
"""

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from agent.tuner.planning.schedule import Schedule
from evaluator.builder.builder import Builder
from evaluator.evaluation import Backend, Candidate, EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.hardware.cores import usable_cores
from evaluator.hardware.devices import describe
from evaluator.ipc.build_request import BuildOutcome
from evaluator.settings import Settings
from problems.sizes import SizeClass
from tests.agent.tuner.written import candidate, chosen, claimed, request, safe

pytestmark = pytest.mark.gpu

DEVICE = "cuda:0"
BUDGET_S = float(os.environ.get("TUNER_GPU_BUDGET_S", "330"))
"""Of the whole test; what hasn't been judged by then is told as such."""
FAST = {
    "vec": "4", "stage": "regs", "items": "2", "acc": "fp32",
}  # fmt: skip
"""What one would write by hand: tells how far the default is from good."""


def schedules(name: str, reference: str) -> dict[str, Schedule]:
    """By name."""
    table = {"default": chosen(reference), "fast": chosen(reference, **FAST)}
    return table | {f"random {n}": safe(reference, Random(f"{n} {name}")) for n in range(3)}


def cases() -> list[tuple[str, str, str, Schedule]]:
    """Problem, reference, draw and schedule; in the second half what is left out first.

    Those of one problem follow each other within a half: setting a problem up takes longer than
    judging a kernel for it.
    """
    problems = claimed(SizeClass.GPU)
    tables = {name: schedules(name, reference) for name, reference in problems.items()}
    halves = ("default", "fast"), ("random 0", "random 1", "random 2")
    return [
        (name, problems[name], draw, tables[name][draw])
        for half in halves
        for name in problems
        for draw in half
        if draw in tables[name]
    ]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(usable_cores()) as running:
        yield running
        running.shutdown(cancel_futures=True)


def test_every_claimed_problem_is_right_under_several_schedules(
    cache: Path, pool: ThreadPoolExecutor
) -> None:
    end = time.monotonic() + BUDGET_S
    builder = Builder(cache, cuda_arch=describe(DEVICE).cuda_architecture)
    asked = cases()
    builds: list[Future[BuildOutcome]] = [
        pool.submit(builder.build, request(reference, schedule))
        for _, reference, _, schedule in asked
    ]
    failed: list[str] = []
    skipped: list[str] = []
    print(
        f"\n{'problem':42} {'draw':8} {'status':14} {'speedup':>8} {'bound':>6} {'build':>6} judge"
    )
    with LocalExecutor(DEVICE, cache=cache) as executor:
        for (name, reference, draw, schedule), build in zip(asked, builds, strict=True):
            if time.monotonic() > end:
                skipped.append(f"{name} {draw}")
                continue
            built = build.result()
            evaluation = executor.evaluate(
                EvaluationRequest(
                    problem_id=name,
                    reference=reference,
                    candidate=Candidate(
                        source=candidate(reference, schedule), backend=Backend.CUDA
                    ),
                    settings=Settings(device=DEVICE, timing_seconds=0.3),
                )
            )
            timing, seconds = evaluation.timing, evaluation.seconds
            speedup = f"{timing.speedup:.2f}x" if timing else "-"
            bound = f"{timing.sol_fraction:.0%}" if timing and timing.sol_fraction else "-"
            print(
                f"{name:42} {draw:8} {evaluation.status:14} {speedup:>8} {bound:>6} "
                f"{built.seconds:6.1f} {seconds.judge:.1f}  {schedule.plan()}",
                flush=True,
            )
            if evaluation.status is not Status.CORRECT:
                reason = f"{evaluation.reason}: {evaluation.message[:600]}"
                failed.append(f"{name} [{schedule.plan()}]\n  {evaluation.status} {reason}")
                print(f"  {reason}", flush=True)
    print(f"{len(asked) - len(skipped)} judged, {len(failed)} failed, {len(skipped)} not reached")
    assert not failed, "\n".join(failed)
    assert not [s for s in skipped if s.endswith("default")], skipped
