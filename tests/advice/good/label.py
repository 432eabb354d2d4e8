"""What a reader of a kernel's source says about it, written before any advice was seen."""

from __future__ import annotations

from dataclasses import dataclass

from tests.advice.good.claim import Claim


@dataclass(frozen=True)
class Label:
    """What limits a kernel, and what its writer must not be told."""

    limited_by: str
    """A few plain sentences."""
    right_advice: str
    """What a person who knows the machine would say; possibly to stop."""
    must_not: frozenset[Claim]
    """Done already, forbidden by the task, or away from a better kernel."""
    should: tuple[Claim, ...] = ()
    """Good first pieces of advice, where there are any."""
