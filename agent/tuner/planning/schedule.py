"""How a fused kernel may be carried out: knobs, their choices, and a plan that reads as one line.

A schedule says nothing about what is computed. The same one may be fast on one problem, slow on
another, fail to build on a third: knobs hold such choices on purpose, since finding them out is
what feedback is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

PLAN = re.compile(r"^#\s*plan:\s*(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Schedule:
    """One choice for each knob."""

    family: str
    choices: Mapping[str, str]

    def __getitem__(self, knob: str) -> str:
        return self.choices[knob]

    def number(self, knob: str) -> int:
        return int(self.choices[knob])

    def replace(self, knob: str, choice: str) -> Schedule:
        return Schedule(self.family, {**self.choices, knob: choice})

    def adopting(self, other: Schedule, knobs: Iterable[str]) -> Schedule:
        """The same schedule with the choices of `other` for `knobs`."""
        return Schedule(self.family, {**self.choices, **{k: other[k] for k in knobs}})

    def differences(self, other: Schedule) -> set[tuple[str, str]]:
        """The knobs for which `other` has another choice, and the choices of this one."""
        return {(k, c) for k, c in self.choices.items() if other.choices.get(k) != c}

    def plan(self) -> str:
        """One line of at most 120 characters, e.g. `rows | vec=8 threads=all`; `parse` reads it."""
        return f"{self.family} | " + " ".join(f"{k}={v}" for k, v in self.choices.items())

    @staticmethod
    def parse(plan: str) -> Schedule | None:
        """Read a plan line, with or without `# plan:`; None where it is not the tuner's."""
        found = PLAN.search(plan)
        # In the table of attempts a bar reads as a slash.
        line = re.fullmatch(r"\s*(\w+) [|/] (.*)", found.group(1) if found else plan, re.S)
        pairs = re.findall(r"(\w+)=([\w.]+)", line.group(2)) if line else []
        return Schedule(line.group(1), dict(pairs)) if line and pairs else None


@dataclass(frozen=True)
class Knob:
    name: str
    choices: Mapping[str, float]
    """Choice -> its weight in the prior."""
    default: str
    risky: str = ""
    """The choice that may not build, may crash or may be inexact."""


@dataclass(frozen=True)
class Space:
    """All schedules of one family of kernels on one backend."""

    backend: str
    family: str
    knobs: tuple[Knob, ...]

    def default(self) -> Schedule:
        """A careful first guess; not the best."""
        return Schedule(self.family, {k.name: k.default for k in self.knobs})

    def draw(self, random: Random) -> Schedule:
        drawn = {k.name: random.choices([*k.choices], [*k.choices.values()])[0] for k in self.knobs}
        return Schedule(self.family, drawn)

    def adopt(self, plan: Schedule) -> Schedule:
        """`plan` as far as it is one of this space, defaults for the rest."""
        known = [k.name for k in self.knobs if plan.choices.get(k.name) in k.choices]
        return self.default().adopting(plan, known)

    def risks(self, schedule: Schedule) -> list[str]:
        return [k.name for k in self.knobs if schedule[k.name] == k.risky]

    def weight(self, knob: str, choice: str) -> float:
        return next(k.choices[choice] for k in self.knobs if k.name == knob)

    def neighbours(self, schedule: Schedule) -> list[Schedule]:
        return [
            schedule.replace(k.name, c)
            for k in self.knobs
            for c in k.choices
            if c != schedule[k.name]
        ]


_CPP = (
    # 32 lanes exist on no x86 CPU: the compiler refuses.
    Knob("vec", {"4": 2, "8": 4, "16": 4, "32": 1}, "4", "32"),
    Knob("threads", {"one": 1, "all": 3}, "one"),
    # 1024 elements (map) or rows.
    Knob("chunk", {"1": 1, "4": 1, "16": 1, "64": 1, "256": 1}, "4"),
    Knob("unroll", {"off": 1, "on": 1}, "off"),
    # libm: one call an element.
    Knob("maths", {"libm": 1, "poly": 3}, "libm"),
)
_CPP_ROWS = (
    # stack: a row's intermediate values lie in an array on the stack.
    Knob("stage", {"none": 1, "stack": 1}, "none", "stack"),
    Knob("acc", {"fp32": 1, "fp64": 2}, "fp64", "fp32"),
)
_CUDA = (
    # Elements of one access; the largest power of two in them that divides a row is used.
    Knob("vec", {"1": 1, "2": 1, "4": 3, "8": 1}, "1"),
    # No device launches blocks of 2048.
    Knob("threads", {"64": 1, "128": 3, "256": 4, "512": 3, "1024": 1, "2048": 1}, "256", "2048"),
    # Vectors that a thread has in flight.
    Knob("items", {"1": 1, "2": 1, "4": 1, "8": 1}, "1"),
)
_CUDA_ROWS = (
    # fp32: a thread that adds up thousands of numbers loses digits.
    Knob("acc", {"fp32": 2, "fp64": 1}, "fp64", "fp32"),
    # Threads a row.
    Knob("team", {"32": 3, "all": 4}, "all"),
    # regs: past some 100 elements a thread they spill, and past 256 nothing is staged.
    Knob("stage", {"none": 2, "regs": 3}, "none"),
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
