"""What a warp at an instruction waits for: the instruction whose result is not there yet.

Instructions of varying latency announce their results on scoreboards. A stall on one is sampled at
the instruction that needs the result; what is slow is the one that makes it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

from evaluator.collect.nsight.sass_instruction import SassInstruction

_COPY = "an asynchronous copy (cp.async)"
_MBARRIER = "an mbarrier: a bulk copy or other warps"
_PRODUCERS: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "stall_long_scoreboard": (
        (re.compile(r"LDG"), "a load from global memory"),
        (re.compile(r"LD"), "a load from memory"),
        (re.compile(r"LDL"), "a load from local memory"),
        (re.compile(r"ATOMG?"), "an atomic on global memory"),
        (re.compile(r"TEX|TLD4?|TXD|TXQ|TMML|SULD|SUATOM"), "a load through the texture unit"),
        (re.compile(r"SYNCS"), _MBARRIER),
    ),
    "stall_short_scoreboard": (
        (re.compile(r"LDS"), "a load from shared memory"),
        (re.compile(r"LDSM"), "a load of a tile from shared memory (ldmatrix)"),
        (re.compile(r"ATOMS"), "an atomic on shared memory"),
        (re.compile(r"SHFL"), "a shuffle"),
        (re.compile(r"C?REDUX|MATCH"), "a warp's reduction or match"),
        (re.compile(r"MUFU"), "a special function"),
        (re.compile(r"F2F|F2I|I2F|FRND|POPC|FLO|BREV"), "a conversion or bit count"),
        (re.compile(r"U?LDC"), "a load of a constant"),
        (re.compile(r"S2U?R"), "the index of a thread or block"),
        (re.compile(r"SYNCS"), _MBARRIER),
    ),
}
"""By the names of `ncu_metrics.QUANTITIES`: opcodes, and what they are in words."""


_REACH = 1000
"""Instructions that are looked at for one stall: kernels may have tens of thousands."""


class Code:
    """A kernel's instructions, by address."""

    def __init__(self, instructions: Sequence[SassInstruction]) -> None:
        self._instructions = instructions
        addresses = [instruction.address for instruction in instructions]
        # A branch back without a condition is mostly the end of what seldom runs.
        loops = [
            (bisect_left(addresses, instruction.target), end)
            for end, instruction in enumerate(instructions)
            if instruction.guarded
            and instruction.target is not None
            and instruction.target <= instruction.address
        ]
        self._loops = sorted(loops, key=lambda loop: loop[1] - loop[0])

    def producer(self, at: int, stall: str) -> tuple[int, str]:
        """The place of what the instruction `at` waits for, and what that is, in words.

        `at` itself and no words where that is not found, and for stalls on anything else. Registers
        are followed back through the innermost loop, then straight up: branches are not.
        """
        consumer, known = self._instructions[at], _PRODUCERS.get(stall)
        if stall == "stall_barrier":
            return self._barrier(at), ""
        if known is None:
            return at, ""
        if consumer.name == "SYNCS":
            return at, _MBARRIER
        wanted = set(consumer.read)
        for place in islice(self._before(at), _REACH):
            candidate = self._instructions[place]
            if consumer.name == "DEPBAR" and candidate.name == "LDGSTS":
                return place, _COPY
            if not candidate.written & wanted:
                continue
            for names, words in known:
                if names.fullmatch(candidate.name):
                    return place, words
            if not candidate.guarded:
                wanted -= candidate.written
        return at, ""

    def _barrier(self, at: int) -> int:
        """A warp that waits at a barrier is sampled at the instruction behind it."""
        if self._instructions[at].name == "BAR":
            return at
        before = islice(self._before(at), _REACH)
        return next((place for place in before if self._instructions[place].name == "BAR"), at)

    def _before(self, at: int) -> Iterator[int]:
        """Places that ran before it, the last one first; a loop's end ran before its head."""
        inside = ((head, end) for head, end in self._loops if head <= at <= end)
        head, end = next(inside, (at, at - 1))
        yield from range(at - 1, head - 1, -1)
        yield from range(end, at - 1, -1)
        yield from range(head - 1, -1, -1)
