"""What a warp at an instruction waits for: the instruction whose result is not there yet.

Instructions of varying latency announce their results on scoreboards. A stall on one is sampled at
the instruction that needs the result; what is slow is the one that makes it.

SASS, a GPU's machine code, is read as `ncu`, `nvdisasm` and `cuobjdump` print it:
`@!P0 LDG.E.128 R4, desc[UR6][R2.64+0x10]`. The operands come in the order of NVIDIA's disassembler,
what is written first.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

_INSTRUCTION = re.compile(r"(?:@!?(?P<guard>U?P\w+)\s+)?(?P<name>[A-Z]\w*)(?P<suffixes>[.\w]*)")
_REGISTER = re.compile(r"(?<![\w.])(?P<bank>U?[RP])(?P<number>\d+)(?P<wide>\.64)?")
_PREDICATE = re.compile(r"!?U?P[\dT]")
_NO_RESULT = re.compile(
    # Stores, reductions without a result, control, barriers, bulk copies.
    r"ST[GSLM]?|REDG?|REDAS?|SUST|SURED|LDGSTS|LDGDEPBAR|DEPBAR|ERRBAR|MEMBAR|BAR|BRA|BRX|JMP|JMX"
    r"|CALL|RET|EXIT|BSSY|BSYNC|BREAK|WARPSYNC|NANOSLEEP|NOP|YIELD|CCTL\w*|FENCE|ARRIVES"
    r"|UBLK\w+|UTMA\w+|UTMACMDFLUSH|WARPGROUP|R2P|KILL|BPT"
)
_ONLY_PREDICATES = re.compile(r"U?[A-Z]*SETP\d?|U?PLOP3|PSETP|FCHK|SYNCS")
_MEMORY = re.compile(r"U?(?:LD|ST|ATOM|RED)\w*")
_COPY = "an asynchronous copy (cp.async)"
MBARRIER = "an mbarrier: a bulk copy or other warps"
_PRODUCERS: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "stall_long_scoreboard": (
        (re.compile(r"LDG"), "a load from global memory"),
        (re.compile(r"LD"), "a load from memory"),
        (re.compile(r"LDL"), "a load from local memory"),
        (re.compile(r"ATOMG?"), "an atomic on global memory"),
        (re.compile(r"TEX|TLD4?|TXD|TXQ|TMML|SULD|SUATOM"), "a load through the texture unit"),
        (re.compile(r"SYNCS"), MBARRIER),
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
        (re.compile(r"SYNCS"), MBARRIER),
    ),
}
"""By the names of `ncu_metrics.QUANTITIES`: opcodes, and what they are in words."""
_REACH = 1000
"""Instructions that are looked at for one stall: kernels may have tens of thousands."""


@dataclass(frozen=True)
class SassInstruction:
    """Registers by their names (`R4`, `UR6`, `P0`), each of a pair or of four by its own."""

    address: int
    name: str
    """Without suffixes."""
    written: frozenset[str]
    read: frozenset[str]
    guarded: bool
    """By a predicate: it may write nothing."""
    target: int | None = None
    """The address that it branches to."""


def parse_instruction(address: int, text: str) -> SassInstruction | None:
    text = text.strip().removesuffix(";").strip()
    match = _INSTRUCTION.match(text)
    if match is None:
        return None
    name, suffixes = match["name"], match["suffixes"].split(".")[1:]
    operands = [operand.strip() for operand in text[match.end() :].split(",")]
    results = _results(name, operands)
    width = _width(name, suffixes)
    written = {r for operand in operands[:results] for r in _registers(operand, width)}
    # What is stored or added may be several registers; other sources count by their first one.
    of_data = width if _MEMORY.fullmatch(name) else 1
    read = {r for operand in operands[results:] for r in _registers(operand, of_data)}
    # An address on the left is read.
    read |= {r for operand in operands[:results] if "[" in operand for r in _registers(operand, 1)}
    guard, is_jump = match["guard"], name in ("BRA", "JMP")
    return SassInstruction(
        address=address,
        name=name,
        written=frozenset(written),
        read=frozenset(read | set(_registers(guard, 1))) if guard else frozenset(read),
        guarded=guard is not None,
        target=int(operands[-1], 16) if is_jump and operands[-1].startswith("0x") else None,
    )


def _results(name: str, operands: list[str]) -> int:
    """How many of the first operands are written: predicates, a register, its carries."""
    if _NO_RESULT.fullmatch(name):
        return 0
    count = _predicates(operands)
    if _ONLY_PREDICATES.fullmatch(name) or "[" in operands[min(count, len(operands) - 1)]:
        return count
    if count == 0 and len(operands) > 1:
        return 1 + _predicates(operands[1:-1])
    return count + 1


def _predicates(operands: list[str]) -> int:
    others = (n for n, o in enumerate(operands) if not _PREDICATE.fullmatch(o) or o[0] == "!")
    return next(others, len(operands))


def _width(name: str, suffixes: list[str]) -> int:
    if name.endswith("MMA") or "128" in suffixes:
        return 4
    if name in ("LDSM", "LDTM") and suffixes[-1:] in (["2"], ["4"]):
        return int(suffixes[-1])
    double = name in ("DADD", "DMUL", "DFMA") or suffixes[:1] == ["F64"]
    return 2 if double or name == "CS2R" or {"64", "WIDE"} & set(suffixes) else 1


def _registers(operand: str, width: int) -> list[str]:
    found = []
    for match in _REGISTER.finditer(operand):
        bank, first = match["bank"], int(match["number"])
        plain = "[" not in operand and bank.endswith("R")
        count = width if plain else 2 if match["wide"] else 1
        found += [f"{bank}{number}" for number in range(first, first + count)]
    return found


class Code:
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
            return at, MBARRIER
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
