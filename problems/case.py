"""A case that a problem is served at: its sizes, and how much its time counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from problems.sizes import SizeClass, declared_cases, with_sizes

Item = TypeVar("Item")


class Served(BaseModel):
    model_config = ConfigDict(frozen=True)

    sizes: dict[str, str]
    """By the name of a module-level constant: its value, as Python text."""
    weight: float
    """How often a call has these sizes; that of all cases together is 1."""
    counts: tuple[float, float, str] | None = None
    """Of a foreign suite: bytes that a call moves and its operations, by the suite's own count, and
    the dtype of its largest tensor."""

    @property
    def name(self) -> str:
        """`batch=512, width=64`."""
        return ", ".join(f"{name}={value}" for name, value in self.sizes.items())


class Case(Served):
    reference: str
    """The problem's source with these sizes substituted."""


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """`count` of them, at least two, or all: the first, the last, and evenly between."""
    step = max(1.0, (len(items) - 1) / (count - 1))
    return [items[round(n * step)] for n in range(min(count, len(items)))]


def cases_of(source: str, size_class: SizeClass) -> tuple[Case, ...]:
    """What `CASES` lists, the heaviest first; none where a file has no such list.

    Raises `UsageError` for a list that names no sizes, unknown ones, or an impossible weight.
    """
    declared = {
        number: case
        for number, case in enumerate(declared_cases(source))
        if case.on in (None, size_class)
    }
    whole = sum(case.weight for case in declared.values())
    cases = [
        Case(
            sizes=case.sizes,
            weight=case.weight / whole,
            counts=case.counts,
            reference=with_sizes(source, size_class, case=number),
        )
        for number, case in declared.items()
    ]
    return tuple(sorted(cases, key=lambda case: -case.weight))
