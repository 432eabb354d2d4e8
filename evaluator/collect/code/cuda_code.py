"""Looks at the machine code of CUDA kernels: what they need, of what instructions they are.

This is what is left where no profiler works. Counts are of instructions in the code, not of their
executions, under the names that `ncu_metrics` has for the latter: their ratios still tell what a
kernel is made of. Nothing is known of times, launches and the sizes of blocks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.collect.code.occupancy import RESERVED_SHARED, Capability, best_occupancy
from evaluator.collect.code.toolkit import find_tool, printed_by
from evaluator.collect.collected import CollectedKernel, KernelTrace
from evaluator.collect.kernel_name import mangled_base_name
from evaluator.collect.nsight.ncu_metrics import QUANTITIES
from evaluator.errors import ProfilerError

_TIMEOUT_S = 60.0
_USAGE = re.compile(
    r"^ Function (?P<name>\S+):\s+REG:(?P<registers>\d+) STACK:(?P<stack>\d+) "
    r"SHARED:(?P<shared>\d+)",
    re.MULTILINE,
)
_ARCHITECTURE = re.compile(r"^arch = sm_(\d+)(\d)", re.MULTILINE)
_FUNCTION = re.compile(r"^\s*Function : (?P<name>\S+)$")
_INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(?P<name>[A-Z]\w*)(?P<suffix>[.\w]*)"
)
_WIDTH = re.compile(r"\.[US]?(8|16|64|128)\b")

# SASS, by the CUDA binary utilities' table of instructions.
_KINDS: dict[str, re.Pattern[str]] = {
    "load_requests": re.compile(r"LDG?|LDGSTS"),
    "store_requests": re.compile(r"STG?"),
    "local_loads": re.compile(r"LDL"),
    "local_stores": re.compile(r"STL"),
    "atomic_requests": re.compile(r"ATOMG?"),
    "reduction_requests": re.compile(r"REDG?"),
    "fp32_thread_instructions": re.compile(r"FFMA2?|FADD2?|FMUL2?"),
    "fp64_thread_instructions": re.compile(r"D(?:FMA|ADD|MUL|MNMX|SETP)"),
    "integer_thread_instructions": re.compile(
        r"IADD\d?|IMAD|IMUL|LEA|SHF|SHL|SHR|LOP3?|ISETP|V?IMNMX3?|IABS|POPC|FLO"
    ),
    "conversion_thread_instructions": re.compile(r"[FI]2[FI]P?|F2FP|I2FP"),
    "sass_shared": re.compile(r"LDSM?|STSM?|ATOMS"),
    "sass_special": re.compile(r"MUFU"),
    "sass_tensor": re.compile(r"[A-Z]*G?MMA"),
    "sass_barriers": re.compile(r"BAR"),
    "sass_calls": re.compile(r"CALL"),
}

_COUNTED = (*_KINDS, "spill_requests", "sass_divisions")


@dataclass(frozen=True)
class KernelCode:
    """One kernel as compiled. Sizes in bytes."""

    capability: Capability
    registers: int
    """Of a thread."""
    stack_bytes: int
    """Of a thread, in local memory: spilled registers and arrays."""
    shared_bytes: int
    """Of a block, what is declared with a size; without what the driver reserves."""
    instructions: Counter[str]
    """By the names of metrics."""

    def metrics(self) -> dict[str, float | None]:
        """By the names of `ncu_metrics.QUANTITIES`, and `sass_...` for what ncu has no name for."""
        occupancy, limits = best_occupancy(
            self.capability, registers=self.registers, shared_bytes=self.shared_bytes
        )
        counted = {name: float(count) for name, count in self.instructions.items()}
        known = {
            "registers": float(self.registers),
            "shared_bytes": float(self.shared_bytes),
            "stack_bytes": float(self.stack_bytes),
            # Of the best size of block: the true one is not in the code.
            "occupancy_limit_pct": occupancy,
            **{name: float(count) for name, count in limits.items()},
        }
        widths = {
            f"bytes_per_{kind}_request": counted.pop(f"{kind}_bytes") / counted[f"{kind}_requests"]
            for kind in ("load", "store")
            if counted.get(f"{kind}_requests")
        }
        unknown = dict.fromkeys(name for name in QUANTITIES if name != "time_us")
        return unknown | dict.fromkeys(_COUNTED, 0.0) | counted | known | widths


def inspect_kernels(libraries: Sequence[Path]) -> KernelTrace:
    """The kernels in these libraries, the one with most instructions first; no times.

    Raises `ProfilerError` where `cuobjdump` is not installed, or no library holds a kernel.
    """
    program = find_tool("cuobjdump")
    if program is None:
        raise ProfilerError("cuobjdump is not installed: it comes with the CUDA toolkit")
    kernels: dict[str, KernelCode] = {}
    options = ("--dump-resource-usage", "--dump-sass")
    for library in libraries:
        usage, sass = (
            printed_by(str(program), library, option, timeout_s=_TIMEOUT_S) for option in options
        )
        if usage is not None and sass is not None:
            kernels |= read_kernels(usage, sass)
    if not kernels:
        raise ProfilerError("the candidate built no library with CUDA kernels in it")
    return as_trace(kernels)


def as_trace(kernels: dict[str, KernelCode]) -> KernelTrace:
    """The same as a trace. The longest instance of a template represents all."""
    ordered = sorted(kernels.items(), key=lambda item: -item[1].instructions["instructions"])
    named: dict[str, KernelCode] = {}
    for mangled, code in ordered:
        named.setdefault(mangled_base_name(mangled), code)
    found = tuple(
        CollectedKernel(name=name, launches=0, time_us=0.0, metrics=code.metrics())
        for name, code in named.items()
    )
    missing = tuple(
        name for name in QUANTITIES if all(kernel.metrics.get(name) is None for kernel in found)
    )
    return KernelTrace(kernels=found, missing=missing)


def read_kernels(usage: str, sass: str) -> dict[str, KernelCode]:
    """By mangled name, from what `cuobjdump --dump-resource-usage` and `--dump-sass` print."""
    architecture = _ARCHITECTURE.search(usage)
    if architecture is None:
        return {}
    capability = int(architecture[1]), int(architecture[2])
    counted = _instructions(sass)
    return {
        match["name"]: KernelCode(
            capability=capability,
            registers=int(match["registers"]),
            stack_bytes=int(match["stack"]),
            shared_bytes=_own_shared(capability, int(match["shared"])),
            instructions=counted[match["name"]],
        )
        for match in _USAGE.finditer(usage)
        if match["name"] in counted
    }


def _own_shared(capability: Capability, printed: int) -> int:
    # From 9.0 on, the size that cuobjdump prints includes what the driver reserves.
    return printed - RESERVED_SHARED if printed and capability >= (9, 0) else printed


def _instructions(sass: str) -> dict[str, Counter[str]]:
    counted: dict[str, Counter[str]] = {}
    current: Counter[str] = Counter()
    for line in sass.splitlines():
        if match := _FUNCTION.match(line):
            current = counted.setdefault(match["name"], Counter())
        elif match := _INSTRUCTION.match(line):
            _count(match["name"], match["suffix"], current)
    return counted


def _count(name: str, suffix: str, counts: Counter[str]) -> None:
    if name == "NOP":
        return
    counts["instructions"] += 1
    for kind, pattern in _KINDS.items():
        # A product with 1 and a sum with 0 are how a register is copied.
        if pattern.fullmatch(name) and not suffix.startswith(".MOV"):
            counts[kind] += 1
            if kind in ("load_requests", "store_requests"):
                counts[kind.replace("requests", "bytes")] += 32 * _width_bytes(suffix)
    if name == "LDL" and ".LU" in suffix:
        # "Last use": how spilled registers come back (PTX ISA, cache operators). Each was stored.
        counts["spill_requests"] += 2
    if name == "I2F" and suffix.endswith(".RP"):
        # Integers are divided by a reciprocal that is rounded up; there is no instruction for it.
        counts["sass_divisions"] += 1


def _width_bytes(suffix: str) -> int:
    match = _WIDTH.search(suffix)
    return int(match[1]) // 8 if match else 4
