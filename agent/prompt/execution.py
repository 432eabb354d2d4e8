"""What building, checking and timing showed of one kernel, in the words of E.

`agent.show` prints the same words.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.record import figures
from agent.record.rival import Rival
from evaluator.baseline import BASELINES
from evaluator.evaluation import Evaluation, Status, Timing
from evaluator.settings import BaselineName
from tools.diagnosis.diagnose import explain


def execution_words(evaluation: Evaluation, source: str, rival: Rival | None) -> str:
    """Lines of text. `source` is the kernel's file; empty: no line of it is to be quoted. `rival`:
    what the prompt says of PyTorch's own times."""
    if evaluation.status is Status.CORRECT:
        times = [*_time_lines(evaluation), *_against_compile(evaluation, rival)]
        return "\n".join([*_error_lines(evaluation), *times])
    if evaluation.status is Status.NO_CODE and evaluation.message:
        return evaluation.message
    return explain(evaluation, source)


def _error_lines(evaluation: Evaluation) -> Iterator[str]:
    """How much of the allowed error is used: what room is left for faster arithmetic."""
    correctness = evaluation.correctness
    if correctness is None or correctness.error_ratio is None or not correctness.error_ratio_limit:
        return
    share = figures.percent(correctness.error_ratio / correctness.error_ratio_limit)
    yield f"- error: {share} of what is allowed (RMSE of the output, worst call)"


def _time_lines(evaluation: Evaluation) -> list[str]:
    timing = evaluation.timing
    if timing is None:
        return ["- time: not measured", *(f"- note: {note}" for note in evaluation.notes)]
    eager = timing.baselines.get(BaselineName.EAGER)
    lines = [f"- time: {timing.latency_us:.1f} us"]
    if eager is not None:
        flags = f" ({eager.flags})" if eager.flags else ""
        lines.append(f"- eager: {eager.latency_us:.1f} us{flags}")
    lines.append(f"- speedup over eager: {_speedup(timing)}")
    for name, baseline in timing.baselines.items():
        if name is not BaselineName.EAGER:
            lines.append(
                f"- speedup over {BASELINES[name].words}: {baseline.speedup:.2f}x, 95 % interval"
                f" [{baseline.speedup_low:.2f}, {baseline.speedup_high:.2f}] ({baseline.verdict})"
            )
    return lines


def _against_compile(evaluation: Evaluation, rival: Rival | None) -> Iterator[str]:
    """Where its time is known, and the kernel was not timed beside it."""
    timing, compile_us = evaluation.timing, rival.compile_us if rival else None
    if timing is None or compile_us is None or BaselineName.COMPILE in timing.baselines:
        return
    yield f"- speedup over torch.compile: {compile_us / timing.latency_us:.2f}x, timed apart"


def _speedup(timing: Timing) -> str:
    interval = f"[{timing.speedup_low:.2f}, {timing.speedup_high:.2f}]"
    return f"{timing.speedup:.2f}x, 95 % interval {interval} ({timing.verdict})"
