"""What went wrong with a candidate, in words that the next turn can act on (`--feedback E`)."""

from __future__ import annotations

import re

from evaluator.evaluation import Correctness, Evaluation, Status
from evaluator.mismatch_pattern import Pattern
from evaluator.mismatch_words import mismatch_words
from evaluator.reason import WITH_WEIGHTS, Reason
from tools.diagnosis.build_words import build_words
from tools.diagnosis.crash import crash_words, position_words
from tools.diagnosis.crash_site import site_words

MAX_LINES = 60
_MAX_WIDTH = 400
_FAST = re.compile(
    r"\b__(?:exp|exp10|log|log2|log10|pow|sin|cos|sincos|tan|tanh|fdivide)f\b|\b\w+\.approx\b"
    r"|-{1,2}use_fast_math|-ffast-math"
)
_OFF_BY_FAST = 1e-3
"""What such functions can make a result be off by, relative to the right one."""
_MAY_BE_FAST = {Pattern.SCATTERED, Pattern.PRECISION}


def explain(evaluation: Evaluation, source: str) -> str:
    """Text on a failure: deterministic, at most `MAX_LINES` lines; empty for a correct candidate.

    `source` is the candidate's Python file, whose lines are quoted with their numbers; empty: no
    line of it is to be quoted, not even from a compiler's output.
    """
    if evaluation.status is Status.CORRECT:
        return ""
    lines = [
        f"{'  | ' if number else ''}{line}"[:_MAX_WIDTH]  # only the first line is ours
        for text in _words(evaluation, source)
        for number, line in enumerate(text.splitlines() or [""])
    ]
    if len(lines) > MAX_LINES:
        left_out = len(lines) - MAX_LINES + 1
        lines = [*lines[: MAX_LINES - 1], f"(left out: {left_out} lines)"]
    return "\n".join(lines)


def _words(evaluation: Evaluation, source: str) -> list[str]:
    match evaluation.status:
        case Status.NO_CODE:
            return [*_message(evaluation), Reason.NO_CODE.advice]
        case Status.BUILD_ERROR:
            return _build(evaluation, source)
        case Status.RUNTIME_ERROR:
            return _runtime(evaluation, source)
        case Status.TIMEOUT:
            return _timeout(evaluation, source)
        case Status.INCORRECT:
            words = _incorrect(evaluation.correctness, source) if evaluation.correctness else []
            if WITH_WEIGHTS in evaluation.message:
                words.insert(0, "Right with random weights, and wrong with trained ones:")
            return words or _message(evaluation)
        case Status.INTEGRITY:
            return [
                *(_message(evaluation) or [f"Refused: {evaluation.reason}."]),
                *_advice(evaluation),
            ]
        case _:
            return []


def _incorrect(correctness: Correctness, source: str) -> list[str]:
    words, found = mismatch_words(correctness), correctness.mismatch
    fast = sorted(set(_FAST.findall(source)))
    if not fast or found is None or not {*found.patterns[:1]} & _MAY_BE_FAST:
        return words
    if float(found.details.get("relative_rms", found.max_rel_error)) > _OFF_BY_FAST:
        return words
    told = [line for line in words if Pattern.SCATTERED.look not in line]
    cause = (
        f"The source has {', '.join(fast)}: fast functions are off by as much where values cancel"
        " or many are added up. Use the accurate ones there, as log2f for __log2f."
    )
    return [*told[:2], cause, *told[2:]]


def _build(evaluation: Evaluation, source: str) -> list[str]:
    report = evaluation.build
    if report is not None and report.log.strip():
        advice = [Reason.BUILD_TIMEOUT.advice] if report.timed_out else []
        return build_words(report.log, source) + advice
    if evaluation.detail.strip():
        return _runtime(evaluation, source)
    return _message(evaluation) or ["The build failed without a word of the compiler."]


def _runtime(evaluation: Evaluation, source: str) -> list[str]:
    text = f"{evaluation.detail}\n{evaluation.message}"
    if re.search(r"^(?:\w+: )?(SyntaxError|IndentationError|TabError): ", text, re.MULTILINE):
        return ["The file is not Python:", *build_words(text, source)]
    if evaluation.reason is Reason.NO_MODEL_NEW:
        return [*_message(evaluation), *_advice(evaluation)]
    if evaluation.reason in (Reason.MEMORY_ERROR, Reason.RACE):
        site = site_words(evaluation.audit, source) if evaluation.audit is not None else []
        words = site or [evaluation.detail.strip()]
        return [*_message(evaluation), *_advice(evaluation), *words]
    return crash_words(evaluation.message, evaluation.detail, source, evaluation.audit)


def _timeout(evaluation: Evaluation, source: str) -> list[str]:
    words = _message(evaluation) or [f"Too slow: {evaluation.reason}."]
    return [
        *words,
        *_advice(evaluation),
        *position_words(evaluation.detail, source, crashed=True),
    ]


def _advice(evaluation: Evaluation) -> list[str]:
    return [evaluation.reason.advice] if evaluation.reason and evaluation.reason.advice else []


def _message(evaluation: Evaluation) -> list[str]:
    return [evaluation.message.strip()[:1200]] if evaluation.message.strip() else []
