"""Whether a candidate holds the memory of a GPU that the judge lacks."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator.evaluation import Status
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.context.problem_setup import CONTEXT_BYTES
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.reason import Reason

_MORE_THAN_REFERENCE = 1.5
"""A library may keep half as much again as its tensors take."""


def rejected_for_excess(
    context: ProblemContext, runners: Sequence[ModuleRunner]
) -> Rejection | None:
    """End a candidate's workers after the device ran short; why it is rejected, if at all.

    It did if they held far more than the reference takes, and the judge has enough without them.
    """
    with context.memory.freed() as freed:
        for runner in runners:
            runner.close()
    held_bytes = sum(freed)
    allowed_bytes = len(runners) * (
        _MORE_THAN_REFERENCE * context.setup.worker_bytes + CONTEXT_BYTES
    )
    wanted_bytes = context.baselines.wanted_bytes(1)
    if held_bytes <= allowed_bytes or not context.memory.has_free(wanted_bytes):
        return None
    return Rejection(
        Status.RUNTIME_ERROR,
        Reason.OUT_OF_MEMORY,
        f"the candidate held {held_bytes / 2**30:.1f} GiB of the device's memory, and the judge "
        f"ran short: the reference takes {context.setup.worker_bytes / 2**30:.1f} GiB",
    )
