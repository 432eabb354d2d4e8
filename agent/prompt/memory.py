"""What the next prompt remembers of earlier turns: the kernel to refine, and what it may tell.

`sample` remembers nothing; `refine` remembers what the feedback allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.config.feedback_spec import Component
from agent.config.run_config import RunConfig
from agent.record.progress import best_of
from agent.record.turn import TurnRecord


@dataclass(frozen=True)
class Memory:
    """What the next prompt may be built from; `--feedback` decides what of it is shown."""

    base: TurnRecord | None = None
    """The turn whose kernel is refined; None where no turn has held one yet."""
    which: str = "the last"
    """Of the turns: what the prompt calls `base`."""
    last: TurnRecord | None = None
    earlier: tuple[TurnRecord, ...] = ()
    """All turns so far with `--history all`, else none."""


def remember(config: RunConfig, turns: Sequence[TurnRecord]) -> Memory:
    """What the next prompt may be built from, given the turns of this sample so far."""
    feedback = config.shown_feedback
    if not feedback or not turns:
        return Memory()
    with_code = [turn for turn in turns if turn.candidate is not None]
    base, which = (with_code[-1] if with_code else None), "the last"
    # Which kernel is the best is something that execution said: without E nobody may know.
    knows_best = config.start_from == "best" and Component.EXECUTION in feedback
    if knows_best and (best := best_of(turns)) is not None:
        base, which = best, "the best so far"
    earlier = tuple(turns) if config.history == "all" else ()
    return Memory(base=base, which=which, last=turns[-1], earlier=earlier)
