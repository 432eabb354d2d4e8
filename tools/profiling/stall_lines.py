"""The lines of the candidate's own file at which its hottest kernel waits, in words."""

from __future__ import annotations

import re

from evaluator.collect.collected import SourceLine
from tools.diagnosis.source_map import SourceMap
from tools.profiling.hot_kernel import STALL_WORDS
from tools.profiling.profile_facts import Facts, percent, shortened

MOST = 3
_QUOTED = 80
_TRITON_FILE = "candidate.py"
_HEAD = re.compile(r"__(?:global|device)__")
_MORE_THAN_ALL = 1.02
"""Sum of shares, above which some samples count twice."""


def stall_lines(facts: Facts, source: str) -> list[str]:
    """At most `MOST` lines, the worst first; none where the profiler knows no lines.

    What is inlined counts where it is defined and where it is called: only the latter is told. So a
    line of another file (a header, a file given to `load()`) is left out, too.
    """
    if facts.collected.gpu is None:
        return []
    mapped = SourceMap(source)
    found = [(n, line) for line in facts.hot.lines if (n := _number(line, mapped)) is not None]
    if sum(line.share for _, line in found) > _MORE_THAN_ALL:
        found = [(n, line) for n, line in found if not _is_in_helper(n, mapped)]
    return [
        f"line {number} `{shortened(mapped.line(number).strip(), _QUOTED)}`:"
        f" {percent(line.share)} of the stalls, waiting for {_words(line)}"
        for number, line in found[:MOST]
    ]


def _words(line: SourceLine) -> str:
    words = STALL_WORDS.get(line.reason, line.reason.removeprefix("stall_"))
    # The line makes the operand that others wait for.
    return f"its {line.producer} ({words.rpartition('(')[2]}" if line.producer else words


def _is_in_helper(number: int, mapped: SourceMap) -> bool:
    """Whether a line of CUDA is part of a function that kernels call."""
    heads = (mapped.line(n) for n in range(number, 0, -1))
    head = next((line for line in heads if _HEAD.search(line)), "")
    return "__global__" not in head and "__device__" in head


def _number(line: SourceLine, mapped: SourceMap) -> int | None:
    if line.file == _TRITON_FILE:
        return line.line if mapped.line(line.line) else None
    return mapped.locate(line.file, line.line)
