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

    A line of another file (a header, a file given to `load()`) is left out: what is inlined from
    there counts at the call too.
    """
    if facts.collected.gpu is None:
        return []
    mapped = SourceMap(source)
    told = []
    for line in facts.hot.lines:
        number = _number(line, mapped)
        if number is not None:
            words = STALL_WORDS.get(line.reason, line.reason.removeprefix("stall_"))
            told.append(
                f"line {number} `{shortened(mapped.line(number).strip(), _QUOTED)}`:"
                f" {percent(line.share)} of the stalls, waiting for {words}"
            )
    return told[:MOST]


def _number(line: SourceLine, mapped: SourceMap) -> int | None:
    if line.file == _TRITON_FILE:
        return line.line if mapped.line(line.line) else None
    return mapped.locate(line.file, line.line)
