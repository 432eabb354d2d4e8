"""Whether a candidate holds the memory of a GPU that the judge lacks."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator.evaluation import Status
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.context.problem_setup import CONTEXT_BYTES
from evaluator.judge.refusal import Refusal
from evaluator.judge.workers.side import Side
from evaluator.reason import Reason

_MORE_THAN_REFERENCE = 1.5
"""A library may keep half as much again as its tensors take."""


def ended_for_hoarding(context: ProblemContext, sides: Sequence[Side]) -> Refusal | None:
    """End a candidate's workers after the device ran short; why it is refused, if it hoarded.

    It did if they held far more than the reference takes, and the judge has enough without them.
    """
    with context.memory.freed() as freed:
        for side in sides:
            side.close()
    held_bytes = sum(freed)
    allowed_bytes = len(sides) * (_MORE_THAN_REFERENCE * context.setup.worker_bytes + CONTEXT_BYTES)
    wanted_bytes = context.baselines.wanted_bytes(1)
    if held_bytes <= allowed_bytes or not context.memory.has_free(wanted_bytes):
        return None
    return Refusal(
        Status.RUNTIME_ERROR,
        Reason.OUT_OF_MEMORY,
        f"the candidate held {held_bytes / 2**30:.1f} GiB of the device's memory, and the judge "
        f"ran short: the reference takes {context.setup.worker_bytes / 2**30:.1f} GiB",
    )
