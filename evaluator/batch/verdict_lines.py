"""One kernel's verdict in words for a person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evaluator.deep_audit.summary import audit_lines
from evaluator.evaluation import DeviceMemory, Evaluation, Timing, Verdict
from evaluator.mismatch_words import mismatch_words
from problems.problem import Problem

_VERDICTS = {
    Verdict.FASTER: "faster than",
    Verdict.SLOWER: "slower than",
    Verdict.SAME: "as fast as",
    Verdict.UNCLEAR: "not clearly faster or slower than",
}


def verdict_lines(path: Path, problem: Problem, evaluation: Evaluation) -> Iterator[str]:
    """The status, and what it rests on; all lines but the first are indented."""
    yield f"{path.name} on {problem.id}: {evaluation.status}"
    for line in _evidence(evaluation):
        yield "  " + _harmless(line.rstrip()).replace("\n", "\n  ")


def _harmless(words: str) -> str:
    """A candidate's words without what would move a terminal's cursor or end a line."""
    return "".join(
        character if character in "\n\t" or character.isprintable() else ascii(character)[1:-1]
        for character in words
    )


def _evidence(evaluation: Evaluation) -> Iterator[str]:
    correctness = evaluation.correctness
    if evaluation.reason:
        yield f"{evaluation.reason}: {evaluation.message}"
    if evaluation.detail:
        yield evaluation.detail
    if evaluation.build and not evaluation.build.ok:
        yield evaluation.build.log[:4000]
    if correctness and correctness.mismatch and evaluation.reason != "wrong_layout":
        yield from mismatch_words(correctness)
    if correctness and correctness.error_ratio is not None:
        yield (
            f"{correctness.calls_judged} of {correctness.calls_made} calls judged; error "
            f"{correctness.error_ratio:.2f}x PyTorch's own (limit "
            f"{correctness.error_ratio_limit:g}x); reference: {correctness.reference}"
        )
    if evaluation.timing:
        yield from _times(evaluation.timing)
    yield from _memory(evaluation.memory)
    yield from audit_lines(evaluation)
    for finding in evaluation.findings:
        yield f"finding: {finding}"
    for note in evaluation.notes:
        yield f"note: {note}"
    yield f"isolation: {', '.join(evaluation.isolation)}"


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
    if timing.sol_fraction is not None:
        share = 100 * timing.sol_fraction
        figure = f"{share:.0f}" if share >= 1 else f"{share:.1g}"
        yield f"{figure} % of the speed of light"


def _memory(memory: DeviceMemory) -> Iterator[str]:
    if memory.candidate_bytes is not None and memory.baseline_bytes is not None:
        own, eager = (size / 2**20 for size in (memory.candidate_bytes, memory.baseline_bytes))
        yield f"{own:.0f} MiB of memory at most (eager {eager:.0f} MiB)"
