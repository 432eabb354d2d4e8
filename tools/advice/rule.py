"""What a rule of advice is, and the figures that it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Never

from tools.advice.thresholds import LIMITS
from tools.profiling.profile_report import Bottleneck, Direction

UP, DOWN = Direction.UP, Direction.DOWN
Scope = Literal["kernel", "call"]
"""What a gain is a share of: the time of the hottest kernel, or that of the whole call."""


class UnknownFigureError(KeyError):
    """A rule asked for a figure that this profile lacks: the rule is silent."""


class Figures(dict[str, float]):
    """`Profile.figures`: one that is missing ends the rule that asks for it."""

    def __missing__(self, name: str) -> Never:
        raise UnknownFigureError(name)


def has_product(f: Figures) -> bool:
    """Whether the task multiplies matrices enough for their data to be reused."""
    return f.get("matrix_intensity", 0.0) >= LIMITS.matrix_intensity


def multiplies(f: Figures) -> bool:
    """Whether the candidate's hottest kernel does the product.

    It does not where a library's kernels took about as long as the whole product takes: their rate
    is known then. What is hottest of the candidate's own comes before or after it.
    """
    return has_product(f) and f.get("product_rate", 0.0) <= 0.0


@dataclass(frozen=True)
class Found:
    evidence: str
    """The figures, in a sentence without a subject: the name of the kernel goes before it."""
    gain: float
    """Share of the time of the rule's scope."""
    figure: str = ""
    """Which of the rule's figures to watch; empty: the first that is known."""
    change: str = ""
    """What to do, in place of the rule's, where some of that is done already."""


@dataclass(frozen=True, kw_only=True)
class AdviceRule:
    """One row of the table. `find` returns None where its condition does not hold."""

    name: str
    bottleneck: Bottleneck
    scope: Scope = "kernel"
    change: str
    """What to do."""
    done: str
    """What the writer did once the figure to watch has moved."""
    watch: tuple[tuple[str, Direction], ...]
    find: Callable[[Figures], Found | None]
