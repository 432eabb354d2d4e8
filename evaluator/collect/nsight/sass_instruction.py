"""One line of SASS, a GPU's machine code, taken apart: which registers it writes and reads.

As `ncu`, `nvdisasm` and `cuobjdump` print it: `@!P0 LDG.E.128 R4, desc[UR6][R2.64+0x10]`. The
operands come in the order of NVIDIA's disassembler, what is written first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    """None for what is no instruction."""
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
    guard = match["guard"]
    return SassInstruction(
        address=address,
        name=name,
        written=frozenset(written),
        read=frozenset(read | set(_registers(guard, 1))) if guard else frozenset(read),
        guarded=guard is not None,
        target=_target(operands) if name in ("BRA", "JMP") else None,
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
    """Registers of a result, or of what is stored."""
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


def _target(operands: list[str]) -> int | None:
    return int(operands[-1], 16) if operands[-1].startswith("0x") else None
