"""How a fused kernel may be carried out: knobs, their choices, and a plan that reads as one line.

A schedule says nothing about what is computed. The same one may be fast on one problem, slow on
another, fail to build on a third: knobs hold such choices on purpose, since finding them out is
what feedback is for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

PLAN = re.compile(r"^#\s*plan:\s*(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Knob:
    """One choice to be made. Choices are ordered: neighbours are the small steps."""

    name: str
    choices: tuple[str, ...]
    default: str
    weights: tuple[float, ...] = ()
    """Of the prior, by choice; empty: all alike."""
    risky: frozenset[str] = frozenset()
    """Choices that may not build, may crash or may be inexact."""

    def draw(self, random: Random) -> str:
        """A choice from the prior."""
        return random.choices(self.choices, self.weights or None)[0]

    def neighbours(self, choice: str) -> list[str]:
        """The other choices, nearest first."""
        here = self.choices.index(choice) if choice in self.choices else 0
        others = [c for c in self.choices if c != choice]
        return sorted(others, key=lambda c: abs(self.choices.index(c) - here))


@dataclass(frozen=True)
class Space:
    """All schedules of one family of kernels on one backend."""

    backend: str
    family: str
    knobs: tuple[Knob, ...]

    def knob(self, name: str) -> Knob | None:
        """The knob of that name, if this space has it."""
        return next((k for k in self.knobs if k.name == name), None)

    def default(self) -> Schedule:
        """A careful first guess; not the best."""
        return Schedule(self.family, {k.name: k.default for k in self.knobs})

    def draw(self, random: Random) -> Schedule:
        """A schedule from the prior."""
        return Schedule(self.family, {k.name: k.draw(random) for k in self.knobs})

    def adopt(self, plan: Schedule | None) -> Schedule:
        """`plan` as far as it is one of this space, defaults for the rest."""
        chosen = dict(self.default().choices)
        for knob in self.knobs:
            if plan and plan.choices.get(knob.name) in knob.choices:
                chosen[knob.name] = plan.choices[knob.name]
        return Schedule(self.family, chosen)


@dataclass(frozen=True)
class Schedule:
    """One choice for each knob."""

    family: str
    choices: Mapping[str, str]

    def __getitem__(self, knob: str) -> str:
        """The choice of that knob."""
        return self.choices[knob]

    def number(self, knob: str) -> int:
        """The choice of a knob whose choices are whole numbers."""
        return int(self.choices[knob])

    def replace(self, knob: str, choice: str) -> Schedule:
        """The same schedule with one other choice."""
        return Schedule(self.family, {**self.choices, knob: choice})

    def plan(self) -> str:
        """One line of at most 120 characters, e.g. `rows | vec=8 threads=all`; `parse` reads it."""
        return f"{self.family} | " + " ".join(f"{k}={v}" for k, v in self.choices.items())

    @staticmethod
    def parse(plan: str) -> Schedule | None:
        """Read a plan line, with or without its `# plan:`; None where it is somebody else's."""
        found = PLAN.search(plan)
        # In the table of attempts a bar reads as a slash.
        line = re.fullmatch(r"\s*(\w+) [|/] (.*)", found.group(1) if found else plan, re.S)
        pairs = re.findall(r"(\w+)=([\w.]+)", line.group(2)) if line else []
        return Schedule(line.group(1), dict(pairs)) if line and pairs else None

    def key(self) -> tuple[tuple[str, str], ...]:
        """Equal for equal choices, whatever their order."""
        return tuple(sorted(self.choices.items()))


_CPP = (
    # 32 lanes exist on no x86 CPU: the compiler refuses.
    Knob("vec", ("1", "4", "8", "16", "32"), "4", (1, 2, 4, 4, 1), frozenset({"32"})),
    Knob("threads", ("one", "half", "all"), "one", (1, 1, 3)),
    # 1024 elements (map) or rows.
    Knob("chunk", ("1", "4", "16", "64", "256"), "4"),
    Knob("unroll", ("off", "on"), "off"),
    # libm: one call an element; crude: 5 bits of the mantissa only.
    Knob("maths", ("libm", "poly", "crude"), "libm", (1, 3, 1), frozenset({"crude"})),
    Knob("stores", ("plain", "stream"), "plain"),
)
_CUDA = (
    # Elements of one access; the largest power of two in them that divides a row is used.
    Knob("vec", ("1", "2", "4", "8"), "1", (1, 1, 3, 1)),
    # No device launches blocks of 2048.
    Knob(
        "threads",
        ("32", "64", "128", "256", "512", "1024", "2048"),
        "256",
        (1, 1, 3, 4, 3, 1, 1),
        frozenset({"2048"}),
    ),
    # flags: --use_fast_math; fast: the special-function unit.
    Knob("maths", ("libm", "fast", "flags"), "libm", (3, 3, 1), frozenset({"flags"})),
    # Blocks that an SM shall hold at once: registers are capped accordingly.
    Knob("min", ("1", "2", "4", "8"), "1", (4, 2, 1, 1)),
    # Vectors that a thread has in flight.
    Knob("items", ("1", "2", "4", "8"), "1"),
)
_CPP_ROWS = (
    # stack: a row's intermediate values lie in an array on the stack.
    Knob("stage", ("none", "stack"), "none", (), frozenset({"stack"})),
    Knob("acc", ("fp32", "fp64"), "fp64", (1, 2), frozenset({"fp32"})),
)
_CUDA_ROWS = (
    # fp32: a thread that adds up thousands of numbers loses digits.
    Knob("acc", ("fp32", "fp64"), "fp64", (2, 1), frozenset({"fp32"})),
    # Threads a row.
    Knob("team", ("1", "8", "32", "all"), "all", (1, 1, 3, 4)),
    # smem: past 48 KiB it doesn't build; regs: past some 100 elements a thread they spill, and
    # past 256 nothing is staged.
    Knob("stage", ("none", "regs", "smem"), "none", (2, 3, 1), frozenset({"smem"})),
)
_KNOBS = {
    ("cpp", "map"): _CPP,
    ("cpp", "rows"): (*_CPP, *_CPP_ROWS),
    ("cuda", "map"): _CUDA,
    ("cuda", "rows"): (*_CUDA, *_CUDA_ROWS),
}


def space(backend: str, family: str) -> Space:
    """The schedules known for `family` (`map` or `rows`) on `backend`; KeyError where none are."""
    return Space(backend, family, _KNOBS[backend, family])
