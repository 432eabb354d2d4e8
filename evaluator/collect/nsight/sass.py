"""What an instruction of a kernel's machine code waits for: the one that made its operand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TEXT = re.compile(r"\s*(?:@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>.*)")
_REGISTER = re.compile(r"\bR(\d+)(\.64)?")
_WIDE = {"128": 4, "64": 2, "WIDE": 2}
"""Registers, by modifiers of an opcode."""
_WITHOUT_RESULT = (
    "ST",
    "RED",
    "BAR",
    "BRA",
    "EXIT",
    "MEMBAR",
    "SYNCS",
    "BSYNC",
    "BSSY",
    "WARPSYNC",
)
KINDS = {
    "LDGSTS": "copy to shared memory",
    "LDSM": "load from shared memory",
    "LDG": "load",
    "LDS": "load from shared memory",
    "LDL": "load from local memory",
    "LD": "load",
    "SHFL": "shuffle",
    "MUFU": "special function",
    "ATOM": "atomic",
    "SYNCS": "mbarrier",
}
"""What takes a time that is not fixed, by the beginning of its opcode; the first that fits."""


@dataclass(frozen=True)
class Instruction:
    """One line of SASS, with the numbers of the registers that it writes and reads."""

    address: str
    opcode: str
    writes: frozenset[int]
    reads: frozenset[int]

    @property
    def kind(self) -> str:
        """What it does, where its time is not fixed; else empty."""
        return next((kind for name, kind in KINDS.items() if self.opcode.startswith(name)), "")


def instruction(address: str, text: str) -> Instruction:
    """An instruction as disassemblers print it: `@P0 LDG.E.128 R4, desc[UR6][R2.64+0x10]`."""
    match = _TEXT.match(text)
    if match is None:
        return Instruction(address, "", frozenset(), frozenset())
    opcode, operands = match["opcode"], match["operands"].split(", ")
    modifiers = opcode.split(".")[1:]
    width = next((_WIDE[modifier] for modifier in modifiers if modifier in _WIDE), 1)
    # A shuffle says first whether its lane took part.
    if operands[0] in ("PT", "!PT") or re.fullmatch(r"P\d", operands[0]):
        operands = operands[1:] or [""]
    has_result = not opcode.startswith(_WITHOUT_RESULT) and operands[0].startswith("R")
    writes = _registers(operands[0], width) if has_result else frozenset()
    # Of a store the last operand is as wide as the store, and others are addresses.
    is_store = opcode.startswith("ST")
    reads: frozenset[int] = frozenset()
    for number, operand in enumerate(operands):
        if number or not has_result:
            is_data = is_store and number == len(operands) - 1
            reads |= _registers(operand, width if is_data else 1)
    return Instruction(address, opcode, writes, reads)


def _registers(operand: str, width: int) -> frozenset[int]:
    found = set()
    for match in _REGISTER.finditer(operand):
        first = int(match[1])
        found |= set(range(first, first + (2 if match[2] else width)))
    return frozenset(found)


def producer(code: Sequence[Instruction], number: int) -> Instruction | None:
    """What instruction `number` of `code`, which is in order of addresses, waits for.

    The nearest one before it that takes a time that is not fixed and writes what it reads; in a
    loop that may stand behind it. None where none does.
    """
    waits_for = set(code[number].reads)
    for earlier in (*reversed(code[:number]), *reversed(code[number + 1 :])):
        if waits_for & earlier.writes:
            if earlier.kind:
                return earlier
            waits_for -= earlier.writes
    return None
