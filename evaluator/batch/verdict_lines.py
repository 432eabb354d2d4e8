"""Verdicts in words for a person: of one kernel, and of a folder of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from evaluator.audit_record import LifeTrial, SanitizerRun, Shares
from evaluator.evaluation import DeviceMemory, Evaluation, Status, Timing, Verdict
from evaluator.metrics import fast_p
from evaluator.mismatch_words import mismatch_words
from problems.problem import Problem

_VERDICTS = {
    Verdict.FASTER: "faster than",
    Verdict.SLOWER: "slower than",
    Verdict.SAME: "as fast as",
    Verdict.UNCLEAR: "not clearly faster or slower than",
}
_THRESHOLDS = (1.0, 1.5, 2.0)
_OCCASIONS = {
    "asked": "asked for",
    "speedup": "for its speedup",
    "under_bound": "faster than the bound",
    "required": "for its label",
    "crash": "for its crash",
}


def verdict_lines(path: Path, problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """The status, and what it rests on; all lines but the first are indented."""
    yield f"{path.name} on {problem.id}: {evaluation.status}"
    for line in _evidence(evaluation):
        yield "  " + harmless(line.rstrip())


def harmless(words: str) -> str:
    """Words of others without what moves a terminal's cursor; only the first is at the margin."""
    return "".join(
        character if character in "\n\t" or character.isprintable() else ascii(character)[1:-1]
        for character in words.replace("\n", "\n  ")
    )


def _evidence(evaluation: Evaluation) -> Iterator[str]:
    correctness = evaluation.correctness
    if evaluation.reason:
        where = f"at {evaluation.case}: " if evaluation.case else ""
        yield f"{where}{evaluation.reason}: {evaluation.message}"
    if evaluation.detail:
        yield evaluation.detail
    if evaluation.build and not evaluation.build.ok:
        yield evaluation.build.log[:4000]
    if correctness and correctness.mismatch:
        yield from mismatch_words(correctness)
    if correctness and correctness.thresholds:
        limits = ", ".join(f"{name} {value:g}" for name, value in correctness.thresholds.items())
        share = correctness.error_ratio or 0.0
        yield f"error {share:.2f} of what the task's own thresholds allow ({limits})"
    elif correctness and correctness.error_ratio is not None:
        yield (
            f"{correctness.calls_judged} of {correctness.calls_made} calls judged; error "
            f"({correctness.error_part}) {correctness.error_ratio:.2f}x PyTorch's own (limit "
            f"{correctness.error_ratio_limit:g}x); reference: {correctness.reference}"
        )
    if evaluation.timing:
        yield from _times(evaluation.timing)
    yield from (f"case {case.words}" for case in evaluation.cases)
    yield from _memory(evaluation.memory)
    yield from _audit(evaluation)
    for finding in evaluation.findings:
        yield f"finding: {finding}"
    for note in evaluation.notes:
        yield f"note: {note}"
    yield f"isolation: {', '.join(evaluation.isolation) or 'none'}"


def _times(timing: Timing) -> Iterator[str]:
    yield (
        f"{timing.latency_us:.1f} us [{timing.latency_low_us:.1f}, {timing.latency_high_us:.1f}]"
    )
    workers = f" in {timing.workers} workers" if timing.workers > 1 else ""
    for name, baseline in timing.baselines.items():
        flags = f"{baseline.flags}; " if baseline.flags else ""
        yield (
            f"{_VERDICTS[baseline.verdict]} {name} ({flags}{baseline.latency_us:.1f} us): "
            f"{baseline.speedup:.3f}x [{baseline.speedup_low:.3f}, "
            f"{baseline.speedup_high:.3f}], {baseline.pairs} pairs{workers}"
        )
    if timing.counted is not None:
        yield timing.counted.words
    if timing.sol_fraction is not None:
        share = 100 * timing.sol_fraction
        figure = f"{share:.0f}" if share >= 1 else f"{share:.1g}"
        yield f"{figure} % of the speed of light"


def _memory(memory: DeviceMemory) -> Iterator[str]:
    if memory.candidate_bytes is not None and memory.baseline_bytes is not None:
        own, eager = (size / 2**20 for size in (memory.candidate_bytes, memory.baseline_bytes))
        yield f"{own:.0f} MiB of memory at most (eager {eager:.0f} MiB)"


def _audit(evaluation: Evaluation) -> Iterator[str]:
    audit = evaluation.audit
    if audit is None:
        return
    if evaluation.provenance is not None:
        shares = f": {_shares(audit.shares)}" if audit.shares else ""
        yield f"provenance: {evaluation.provenance}{shares}"
    yield f"audited in {audit.seconds:.1f} s, {_OCCASIONS[audit.occasion]}"
    for run in audit.sanitizers:
        yield f"{run.tool}: {_run(run)}"
        yield from (f"  {finding}" for finding in run.findings)
    yield from _life(audit.life)


def _life(trials: Sequence[LifeTrial]) -> Iterator[str]:
    if not trials:
        return
    holding = ", ".join(trial.life for trial in trials if trial.outcome == "holds")
    if holding:
        yield f"used as programs use modules: right with {holding}"
    for trial in trials:
        if trial.outcome != "holds":
            tried = "" if trial.outcome == "broken" else "not tried: "
            yield f"property {trial.life}: {tried}{trial.note}"


def _shares(shares: Shares) -> str:
    parts = [f"{100 * shares.own:.0f} % of the time in its own kernels"]
    if shares.library_names and shares.library >= 0.005:
        names = ", ".join(shares.library_names[:3])
        parts.append(f"{100 * shares.library:.0f} % in libraries ({names})")
    if shares.other >= 0.005:
        parts.append(f"{100 * shares.other:.0f} % elsewhere")
    if shares.imports:
        parts.append(f"which call {', '.join(shares.imports[:3])}")
    return ", ".join(parts)


def _run(run: SanitizerRun) -> str:
    words = {
        "clean": f"clean over {run.calls} calls {run.note}".rstrip(),
        "findings": f"{len(run.findings)} found",
        "inconclusive": f"inconclusive: {run.note}",
        "not_run": f"not run: {run.note}",
    }
    return words[run.outcome]


def folder_lines(outcomes: Sequence[Evaluation | Exception]) -> Iterator[str]:
    """Counts and shares over kernels: each file is one attempt at its problem.

    A kernel that cannot be judged counts for nothing but its own number: it may be right or wrong.
    """
    judged = [each for each in outcomes if isinstance(each, Evaluation)]
    correct = sum(each.status is Status.CORRECT for each in judged)
    failed = len(outcomes) - len(judged)
    missing = f"; {failed} cannot be judged" if failed else ""
    yield f"{correct} of {len(outcomes)} kernels are correct{missing}"
    if not judged:
        return
    thresholds = "".join(f"{f'p = {p:g}':>9}" for p in (0.0, *_THRESHOLDS))
    of = "kernel" if len(judged) == 1 else f"{len(judged)} kernels"
    yield f"{f'fast_p over eager, of {of} judged':40}{thresholds}"
    # What our own checks hold against a kernel is no speed of its.
    timings = [None if each.findings else each.timing for each in judged]
    estimates = [t.speedup if t else None for t in timings]
    # The verdict asks for a margin besides: equal kernels differ a little too.
    clearly = [t.speedup_low if t and t.verdict is Verdict.FASTER else None for t in timings]
    for name, speedups in (("by the estimate", estimates), ("clearly, by the interval", clearly)):
        shares = [correct / len(judged), *(fast_p(speedups, p) for p in _THRESHOLDS)]
        yield f"  {name:38}" + "".join(f"{share:9.3f}" for share in shares)
    if untimed := correct - sum(timing is not None for timing in timings):
        yield f"{untimed} correct without a time: counted at p = 0 alone"
