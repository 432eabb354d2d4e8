"""What went wrong with a candidate, in words that the next turn can act on (`--feedback E`)."""

from __future__ import annotations

import re

from evaluator.evaluation import Evaluation, Status
from evaluator.mismatch_words import mismatch_words
from tools.diagnosis.build_words import build_words
from tools.diagnosis.crash import crash_words, position_words
from tools.diagnosis.crash_site import site_words

MAX_LINES = 60
_MAX_WIDTH = 400

_NO_CODE = (
    "The answer held no usable module. Send one fenced Python block that holds the whole file:"
    " imports, the kernels, and a class `ModelNew(nn.Module)` with the constructor and the"
    " `forward` arguments of `Model`. Nothing after it."
)

_INTEGRITY = {
    "protocol_broken": "What came from the kernel's process is not what a forward call sends: only"
    " compute and return tensors, and leave the process, its files and its sockets alone.",
    "input_modified": "Inputs must not be modified: write to a tensor of your own.",
    "not_custom": "The work has to be done by kernels of your own, not by PyTorch's operators or a"
    " vendor's library.",
    "result_overwritten": "A result must stay as it is while forward is called again: return a"
    " tensor that the next call does not write to.",
    "below_floor": "It was faster than the bytes that must move can be moved on this device, so"
    " it did not do the work. Every call has to compute its result from that call's inputs.",
}

_LUCK = {
    "memory_error": "The results were right, but by luck: check every index and every length"
    " against the tensors' real sizes, tails and last rows included.",
    "race": "The results were right, but by luck: put a barrier between threads that write a place"
    " in shared memory and threads that read or write it.",
}

_PHASES = (
    ("build", "Compiling took too long: use fewer template instantiations, less unrolling, and"
     " headers no larger than needed."),
    ("import", "Importing the file took too long: do no work at import but compiling the kernels."),
    ("construct", "The constructor took too long: do no heavy work there."),
    ("call_", "A call of `forward` took too long: look for a loop that does not end, a deadlock"
     " (a barrier that not all threads reach, a spin on a value that nobody writes), and serial"
     " work over the whole tensor."),
)  # fmt: skip


def explain(evaluation: Evaluation, source: str) -> str:
    """Text on a failure: deterministic, at most `MAX_LINES` lines; empty for a correct candidate.

    `source` is the candidate's Python file, whose lines are quoted with their numbers; empty: no
    line of it is to be quoted, not even from a compiler's output.
    """
    if evaluation.status is Status.CORRECT:
        return ""
    lines = _words(evaluation, source)
    lines = [line[:_MAX_WIDTH] for text in lines for line in text.splitlines() or [""]]
    if len(lines) > MAX_LINES:
        left_out = len(lines) - MAX_LINES + 1
        lines = [*lines[: MAX_LINES - 1], f"(left out: {left_out} lines)"]
    return "\n".join(lines)


def _words(evaluation: Evaluation, source: str) -> list[str]:
    match evaluation.status:
        case Status.NO_CODE:
            return [*_message(evaluation), _NO_CODE]
        case Status.BUILD_ERROR:
            return _build(evaluation, source)
        case Status.RUNTIME_ERROR:
            return _runtime(evaluation, source)
        case Status.TIMEOUT:
            return _timeout(evaluation, source)
        case Status.INCORRECT:
            if evaluation.reason == "wrong_layout":
                # Refused before any value was looked at: the message says it all.
                return _message(evaluation)
            words = mismatch_words(evaluation.correctness) if evaluation.correctness else []
            return words or _message(evaluation)
        case Status.INTEGRITY:
            advice = _INTEGRITY.get(evaluation.reason)
            told = _message(evaluation) or [f"Refused: {evaluation.reason}."]
            return told + ([advice] if advice else [])
        case _:
            return []


def _build(evaluation: Evaluation, source: str) -> list[str]:
    report = evaluation.build
    if report is not None and report.log.strip():
        advice = [_advice("build")] if report.timed_out else []
        return build_words(report.log, source) + advice
    if evaluation.detail.strip():
        return _runtime(evaluation, source)
    return _message(evaluation) or ["The build failed without a word of the compiler."]


def _runtime(evaluation: Evaluation, source: str) -> list[str]:
    text = f"{evaluation.detail}\n{evaluation.message}"
    if re.search(r"^(?:\w+: )?(SyntaxError|IndentationError|TabError): ", text, re.MULTILINE):
        return ["The file is not Python:", *build_words(text, source)]
    if evaluation.reason == "no_model_new":
        return [*_message(evaluation), _NO_CODE]
    if evaluation.reason in _LUCK:
        site = site_words(evaluation.audit, source) if evaluation.audit is not None else []
        told = site or [evaluation.detail.strip()]
        return [*_message(evaluation), _LUCK[evaluation.reason], *told]
    return crash_words(evaluation.message, evaluation.detail, source, evaluation.audit)


def _timeout(evaluation: Evaluation, source: str) -> list[str]:
    advice = _advice(evaluation.reason)
    told = _message(evaluation) or [f"Too slow: {evaluation.reason}."]
    return [
        *told,
        *([advice] if advice else []),
        *position_words(evaluation.detail, source, crashed=True),
    ]


def _advice(reason: str) -> str:
    """On what took too long; empty where nothing is known of it."""
    return next((words for phase, words in _PHASES if reason.startswith(phase)), "")


def _message(evaluation: Evaluation) -> list[str]:
    return [evaluation.message.strip()[:1200]] if evaluation.message.strip() else []
