"""The lines of the candidate's own file at which its hottest kernel waits, in words."""

from __future__ import annotations

from evaluator.collect.collected import SourceLine
from tools.diagnosis.source_map import SourceMap
from tools.profiling.hot_kernel import STALL_WORDS
from tools.profiling.profile_facts import Facts, percent, shortened

MOST = 3
_QUOTED = 80
_TRITON_FILE = "candidate.py"


def stall_lines(facts: Facts, source: str) -> list[str]:
    """At most `MOST` lines, the worst first; none where the profiler knows no lines.

    A line of another file (a file given to `load()`) is left out; what is inlined from a header
    counts for the call.
    """
    if facts.collected.gpu is None:
        return []
    mapped = SourceMap(source)
    told = []
    for line in facts.hot.lines:
        number = _number(line.file, line.line, mapped)
        if number is not None:
            called = _also(", called at line", line.file, line.called_at, mapped)
            used = _also(", used at line", line.file, line.used_at, mapped)
            told.append(
                f"line {number} `{shortened(mapped.line(number).strip(), _QUOTED)}`{called}:"
                f" {percent(line.share)} of the stalls, {_words(line)}{used}"
            )
    return told[:MOST]


def _words(line: SourceLine) -> str:
    words = STALL_WORDS.get(line.reason)
    name = words[words.rindex("(") + 1 : -1] if words else line.reason.removeprefix("stall_")
    return f"{name} on {line.producer}" if line.producer else name


def _also(words: str, file: str, line: int | None, mapped: SourceMap) -> str:
    number = _number(file, line, mapped) if line is not None else None
    return f"{words} {number}" if number is not None else ""


def _number(file: str, line: int, mapped: SourceMap) -> int | None:
    if file == _TRITON_FILE:
        return line if mapped.line(line) else None
    return mapped.locate(file, line)
