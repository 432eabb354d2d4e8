"""A stored result under the rules of advice as they are now.

So rules can be changed without a GPU, and stay honest to what was measured on one.
"""

from __future__ import annotations

import re
from functools import cached_property

from evaluator.collect.collected import Collected
from tests.advice.result import Result
from tools.advice.figures import figures
from tools.advice.rules import advise
from tools.advice.units import unit
from tools.profiling.advice import Advice, Direction
from tools.profiling.profile_facts import Facts


class Replay:
    """One result's figures, and the advice that follows from them."""

    def __init__(self, source: str, result: Result) -> None:
        """`source`: the candidate's file."""
        self.result = result
        timing = (result.evaluation or {}).get("timing") or {}
        collected = Collected.model_validate(result.collected)
        found = collected.gpu.kernels if collected.gpu is not None else ()
        words = set(re.findall(r"[A-Za-z_]\w*", source))
        self.facts = Facts(
            collected=collected,
            own=frozenset(kernel.name for kernel in found if kernel.name in words),
            latency_us=timing.get("latency_us"),
            bound_us=timing.get("bound_us"),
            attainable_us=timing.get("attainable_us"),
        )

    @cached_property
    def figures(self) -> dict[str, float]:
        """What the rules read."""
        return figures(self.facts)

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """The best first."""
        return advise(self.figures, self.facts.hot.name)

    def moved(self, advice: Advice) -> bool | None:
        """Whether the figure that an earlier profile's advice named has since moved as predicted,
        by more than it varies by itself; None where it is not known any more."""
        after = self.figures.get(advice.figure)
        if after is None:
            return None
        change = after - advice.before
        wanted = change if advice.direction is Direction.UP else -change
        return wanted > unit(advice.figure).margin(advice.before)
