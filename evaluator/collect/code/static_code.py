"""Looks at the machine code of a compiled library: did the compiler vectorise the inner loops?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.builder.toolchain import printed_by
from evaluator.collect.collected import LoopFacts

_TIMEOUT_S = 20.0
_INSTRUCTION = re.compile(r"^\s*(?P<address>[0-9a-f]+):\s+(?P<name>[a-z]\w*)\s*(?P<operands>.*)$")
_FUNCTION = re.compile(r"^[0-9a-f]+ <(?P<name>[^>]*)>:$")
_TARGET = re.compile(r"^(?P<address>[0-9a-f]+) <")
_FLOATING = re.compile(
    r"^v?(?P<operation>add|sub|mul|div|max|min|sqrt|fn?m(?:add|sub|addsub|subadd)|hadd|dp)"
    r"(?:132|213|231)?(?P<kind>ps|pd|ss|sd)$"
)
_CALLED = re.compile(r"<(?P<name>\w+)@")
_MATHS = frozenset(
    name + suffix
    for name in ("exp", "exp2", "expm1", "log", "log2", "log1p", "tanh", "erf", "erfc", "pow",
                 "sin", "cos", "sinh", "cosh", "atan", "atan2", "cbrt", "fmod", "tgamma")
    for suffix in ("", "f")
)  # fmt: skip


@dataclass(frozen=True)
class _Instruction:
    address: int
    name: str
    operands: str


def inspect_loops(libraries: Sequence[Path]) -> LoopFacts | None:
    """Floating-point instructions of the innermost loops of all libraries together (x86-64).

    None where there are none, `objdump` is not installed, or does not understand the files.
    """
    command = ("objdump", "-d", "--no-show-raw-insn", *map(str, libraries))
    disassembly = printed_by(*command, timeout_s=_TIMEOUT_S) if libraries else None
    if disassembly is None:
        return None
    loops = [
        loop
        for body in _functions(disassembly)
        for loop in _without_tails([_Loop.of(part) for part in _innermost_loops(body)])
    ]
    called = {name for loop in loops for name in loop.calls}
    # What remains of a vectorised loop calls the scalar function for the last few elements.
    vectorised = set(re.findall(r"<_ZGV\w+?_(\w+)@", disassembly))
    return LoopFacts(
        packed=sum(len(loop.packed) for loop in loops),
        scalar=sum(len(loop.scalar) for loop in loops),
        widest_bits=max((loop.widest_bits for loop in loops), default=0),
        calls=tuple(sorted((called & _MATHS) - vectorised)),
    )


@dataclass(frozen=True)
class _Loop:
    packed: tuple[str, ...]
    """Operations on several elements, without their suffix."""
    scalar: tuple[str, ...]
    calls: tuple[str, ...]
    widest_bits: int

    @classmethod
    def of(cls, body: list[_Instruction]) -> _Loop:
        packed, scalar, calls, width = [], [], [], 0
        for instruction in body:
            match = _FLOATING.match(instruction.name)
            if match and match["kind"].startswith("p"):
                packed.append(match["operation"])
                given = instruction.operands
                width = max(width, 512 if "%zmm" in given else 256 if "%ymm" in given else 128)
            elif match:
                scalar.append(match["operation"])
            elif instruction.name.startswith("call") and (
                target := _CALLED.search(instruction.operands)
            ):
                calls.append(target["name"])
        packed += ["call" for name in calls if name.startswith("_ZGV")]
        return cls(tuple(packed), tuple(scalar), tuple(calls), width)


def _without_tails(loops: list[_Loop]) -> list[_Loop]:
    """A function's loops without those that do a vectorised loop's last few elements."""
    vectorised = {
        operation
        for loop in loops
        if len(loop.packed) >= len(loop.scalar)
        for operation in loop.packed
    }
    return [
        loop
        for loop in loops
        if loop.packed or loop.calls or not vectorised.issuperset(loop.scalar)
    ]


def _functions(disassembly: str) -> list[list[_Instruction]]:
    bodies: list[list[_Instruction]] = []
    for line in disassembly.splitlines():
        if _FUNCTION.match(line):
            bodies.append([])
        elif bodies and (match := _INSTRUCTION.match(line)):
            bodies[-1].append(
                _Instruction(int(match["address"], 16), match["name"], match["operands"])
            )
    return bodies


def _innermost_loops(body: list[_Instruction]) -> list[list[_Instruction]]:
    """Stretches between a backward jump and its target that hold no other such stretch."""
    if not body:
        return []
    first = body[0].address
    spans = []
    for instruction in body:
        # A plain jmp backwards mostly joins a tail; optimised loops end in a conditional jump.
        conditional = instruction.name.startswith("j") and instruction.name != "jmp"
        if conditional and (match := _TARGET.match(instruction.operands)):
            target = int(match["address"], 16)
            if first <= target < instruction.address:
                spans.append((target, instruction.address))
    inner = [
        (start, end)
        for start, end in spans
        if not any(start <= s and e <= end and (s, e) != (start, end) for s, e in spans)
    ]
    return [
        [instruction for instruction in body if start <= instruction.address <= end]
        for start, end in sorted(set(inner))
    ]
