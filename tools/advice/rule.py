"""What a rule of advice is, and the figures that it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Never

from tools.profiling.advice import Direction
from tools.profiling.bottleneck import Bottleneck

Scope = Literal["kernel", "call"]
"""What a gain is a share of: the time of the hottest kernel, or that of the whole call."""


class UnknownFigureError(KeyError):
    """A rule asked for a figure that this profile lacks: the rule is silent."""


class Figures(dict[str, float]):
    """`Profile.figures`: one that is missing ends the rule that asks for it."""

    def __missing__(self, name: str) -> Never:
        raise UnknownFigureError(name)


@dataclass(frozen=True)
class Found:
    """What a rule saw."""

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
    """The heading under which its advice stands."""
    scope: Scope = "kernel"
    when: str
    """The condition in words; `{name}` stands for a threshold."""
    change: str
    """What to do about it."""
    watch: tuple[tuple[str, Direction], ...]
    """Figures that should move."""
    model: str
    """How the gain is estimated."""
    source: str = "own model"
    find: Callable[[Figures], Found | None]
