"""Where the time of one candidate goes: `profile()` and `python -m tools.profile`.

Nothing here imports torch: what runs the candidate is a process of its own. The best profiler that
works is used, and which one it was, and why no better one, is part of the result.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evaluator.command.command_line import serve

if TYPE_CHECKING:
    from evaluator.collect.collected import Collected
    from evaluator.collect.ncu import NcuSession
    from evaluator.evaluation import Evaluation, EvaluationRequest
    from evaluator.judge.workers.zygote import Zygote
    from tools.profiling.profile_facts import Facts
    from tools.profiling.profile_report import KernelShare, Profile, ProfilerTier

_NCU_TIMEOUT_S = 600.0
"""Without the wait for the device, which the broker holds for it."""
_TIMEOUT_S = 120.0
MOST_BYTES = 64 * 2**20
"""A larger report is not kept."""


def profile(
    request: EvaluationRequest,
    evaluation: Evaluation,
    *,
    keep: Path | None = None,
    session: NcuSession | None = None,
    zygote: Zygote | None = None,
) -> Profile:
    """Profile a candidate that was judged correct. Blocks while its device is held by another.

    `keep` is a folder for the profiler's own files and the figures read from them. `session` is
    for callers that profile again: the next profile's process is started ahead. `zygote`: the same
    for `collect_own`. Raises `ProfilerError` with one line when no profiler works.
    """
    from evaluator.errors import KernelEndedError, ProfilerError
    from evaluator.evaluation import Status

    if evaluation.status is not Status.CORRECT:
        raise ProfilerError(f"only a correct kernel is profiled, this one is {evaluation.status}")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="refinery-profile-") as name:
        folder = Path(name)
        tier, reason, collected = _collect(folder, request, session, zygote)
        if keep is not None:
            keep_report(folder / tier, collected, keep)
    try:
        found = _profile(request, evaluation, tier, reason, collected)
    except (ArithmeticError, AssertionError, LookupError, ValueError) as error:
        # It was at the candidate's mercy, and took the device.
        kind = type(error).__name__
        raise KernelEndedError(f"what the profiler left cannot be read ({kind})") from error
    return found.model_copy(update={"seconds": time.monotonic() - begin})


def _profile(
    request: EvaluationRequest,
    evaluation: Evaluation,
    tier: ProfilerTier,
    reason: str,
    collected: Collected,
) -> Profile:
    from tools.advice.diagnosis import diagnose
    from tools.advice.figures import figures
    from tools.profiling.profile_report import Profile
    from tools.profiling.profile_summary import summary

    facts = _facts(request, evaluation, collected)
    kernels = _shares(facts)
    read = figures(facts)
    source = request.candidate.source
    found = diagnose(read, facts.hot.name if collected.gpu is not None else "", source)
    return Profile(
        rung=tier,
        rung_reason=reason,
        device=evaluation.device or request.settings.device,
        bottleneck=found.bottleneck,
        headline=found.headline,
        kernels=kernels,
        latency_us=facts.latency_us,
        bound_us=facts.bound_us,
        sol_fraction=facts.sol_fraction,
        missing=collected.gpu.missing if collected.gpu is not None else (),
        figures=read,
        advice=found.advice,
        summary=summary(
            found.bottleneck,
            found.headline,
            facts,
            kernels,
            tier=tier,
            reason=reason,
            source=source,
        ),
        seconds=0.0,
        isolation=collected.isolation,
        stages=collected.seconds,
    )


def keep_report(folder: Path, collected: Collected, keep: Path) -> None:
    """Copy the profiler's report from `folder` to `keep`, for a person who wants to open it."""
    from evaluator.collect.nsight.read_report import REPORT
    from evaluator.collect.target.target import COLLECTED
    from evaluator.collect.torch_trace import TRACE
    from problems.plain_file import open_plain

    keep.mkdir(parents=True, exist_ok=True)
    (keep / COLLECTED).write_text(collected.model_dump_json())
    for name in (REPORT, TRACE):
        try:
            report = open_plain(folder / name, MOST_BYTES)
        except OSError:
            continue  # this profiler leaves none of that name, or it is nothing to be kept
        with report, (keep / name).open("wb") as kept:
            shutil.copyfileobj(report, kept)


def prepare(session: NcuSession, device: str) -> None:
    """Start ahead what the first profile on `device` would wait for, where there is an `ncu`."""
    from evaluator.collect.ncu import ncu_command
    from evaluator.errors import ProfilerError
    from evaluator.hardware.devices import describe

    if device != "cpu":
        with suppress(ProfilerError):  # there is none
            session.prepare(ncu_command(describe(device).name)[0], device)


def _collect(
    folder: Path, request: EvaluationRequest, session: NcuSession | None, zygote: Zygote | None
) -> tuple[ProfilerTier, str, Collected]:
    """The best profiler tier that works, why no better one does, and what was collected."""
    from evaluator.collect.counted_launches import are_all_counted, for_all
    from evaluator.collect.ncu import collect_ncu
    from evaluator.collect.own_collectors import collect_own
    from evaluator.collect.target.target import write_request
    from evaluator.errors import KernelEndedError, ProfilerError
    from evaluator.hardware.devices import describe
    from tools.profiling.profile_report import ProfilerTier

    device = request.settings.device
    own = partial(collect_own, device=device, timeout_s=_TIMEOUT_S, zygote=zygote)

    def counted(place: Path) -> Collected:
        limit_s = _NCU_TIMEOUT_S
        found = collect_ncu(place, describe(device), timeout_s=limit_s, session=session)
        if found.gpu is None or are_all_counted(found.gpu):
            return found
        (timed := place / "timed").mkdir()
        write_request(timed, request)
        trace = own(timed, "torch_trace")
        update = {"gpu": trace.gpu and for_all(found.gpu, trace.gpu)}
        return found.after({"trace": trace.seconds["process"]}).model_copy(update=update)

    tiers: dict[ProfilerTier, Callable[[Path], Collected]] = {
        ProfilerTier.NCU: counted,
        ProfilerTier.TORCH_TRACE: lambda place: own(place, "torch_trace"),
    }
    if device == "cpu":
        tiers = {ProfilerTier.CPU: lambda place: own(place, "cpu")}
    reasons: list[str] = []
    kind = ProfilerError
    for tier, collect in tiers.items():
        place = folder / tier
        try:
            place.mkdir()
            write_request(place, request)
            return tier, "; ".join(reasons), collect(place)
        except (ProfilerError, OSError) as error:
            # An OSError: another device's candidate may have filled the disk.
            reasons.append(str(error))
            kind = KernelEndedError if isinstance(error, KernelEndedError) else kind
    raise kind("; ".join(reasons))


def _facts(request: EvaluationRequest, evaluation: Evaluation, collected: Collected) -> Facts:
    from tools.profiling.profile_facts import Facts

    own = collected.gpu.own(request.candidate.source) if collected.gpu is not None else ()
    # The profile is of the heaviest case, whose sizes the request has.
    timing = evaluation.cases[0].timing if evaluation.cases else evaluation.timing
    return Facts(
        collected=collected,
        own=frozenset(kernel.name for kernel in own),
        latency_us=timing.latency_us if timing else None,
        bound_us=timing.bound_us if timing else None,
        attainable_us=timing.attainable_us if timing else None,
    )


def _shares(facts: Facts) -> tuple[KernelShare, ...]:
    from tools.profiling.profile_report import KernelShare

    if facts.collected.gpu is not None:
        busy_us = facts.gpu.busy_us or 1.0
        return tuple(
            KernelShare(
                name=kernel.name,
                own=kernel.name in facts.own,
                launches=kernel.launches,
                time_us=kernel.time_us,
                share=min(1.0, kernel.time_us / busy_us),
                metrics=kernel.metrics,
            )
            for kernel in facts.gpu.kernels
        )
    whole = max(facts.profiled_us, 1e-9)
    return tuple(
        KernelShare(
            name=operator.name,
            own=operator.own,
            launches=operator.calls,
            time_us=operator.time_us,
            share=operator.time_us / whole,
            metrics={"allocated_bytes": float(operator.allocated_bytes)},
        )
        for operator in facts.cpu.operators
    )


def command(
    kernel: Annotated[Path, typer.Argument(help="A file with ModelNew.")],
    problem: Annotated[str, typer.Option(help="Id or file of the problem.")],
    suite: Annotated[
        Path | None,
        typer.Option(help="A folder of problems in KernelBench's format. [our own]"),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    keep: Annotated[
        Path | None, typer.Option(help="A folder for the profiler's own report.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="The profile on stdout.")] = False,
) -> None:
    """Judge a kernel, then say what limits it. Exit code 1: not correct; 2: wrong usage."""
    from evaluator.check import request_for
    from evaluator.evaluation import Status
    from evaluator.executor.local import LocalExecutor
    from evaluator.hardware.device_choice import resolve_device
    from evaluator.settings import Settings
    from problems.errors import UsageError
    from problems.loader import load_problem
    from problems.source_file import read_source
    from tools.advice.words import advice_lines
    from tools.diagnosis.diagnose import explain

    if not kernel.is_file():
        raise UsageError(f"{kernel} is no file: give a kernel file")
    settings = Settings(device=resolve_device(device), timing_seconds=3.0)
    request = request_for(read_source(kernel), load_problem(problem, suite), settings)
    with LocalExecutor(settings.device) as executor:
        evaluation = executor.evaluate(request)
    if evaluation.status is not Status.CORRECT:
        print(f"{evaluation.status}: only a correct kernel is profiled", file=sys.stderr)
        print(explain(evaluation, request.candidate.source), file=sys.stderr)
        raise typer.Exit(1)
    result = profile(request, evaluation, keep=keep)
    if json_:
        print(json.dumps(result.model_dump(mode="json")))
    else:
        print("\n".join([result.summary, "", *advice_lines(result.advice)]), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(serve(command, "python -m tools.profile"))
