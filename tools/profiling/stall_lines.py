"""The lines of the candidate's own file at which its hottest kernel waits, in words."""

from __future__ import annotations

from evaluator.collect.collected import SourceLine
from tools.diagnosis.source_map import SourceMap
from tools.profiling.hot_kernel import STALL_WORDS
from tools.profiling.profile_facts import Facts, percent, shortened

MOST = 3
_QUOTED = 80
_TRITON_FILE = "candidate.py"
_RARE_WORDS = {
    "stall_branch": "a branch to be taken (branch resolving)",
    "stall_constant": "the cache of constants (IMC miss)",
    "stall_drain": "stores to leave (drain)",
    "stall_membar": "a memory fence (membar)",
    "stall_no_instruction": "instructions to be fetched (no instruction)",
    "stall_sleeping": "the end of a sleep (sleeping)",
    "stall_tensor": "tensor cores (GMMA)",
    "stall_tex_throttle": "the queue of texture instructions (TEX throttle)",
}
"""Reasons that are reported for a line, and not for a whole kernel."""
_WORDS = STALL_WORDS | _RARE_WORDS


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
            words = _WORDS.get(line.reason, line.reason.removeprefix("stall_"))
            told.append(
                f"line {number} `{shortened(mapped.line(number).strip(), _QUOTED)}`:"
                f" {percent(line.share)} of the stalls, waiting for {words}"
            )
    return told[:MOST]


def _number(line: SourceLine, mapped: SourceMap) -> int | None:
    if line.file == _TRITON_FILE:
        return line.line if mapped.line(line.line) else None
    return mapped.locate(line.file, line.line)
