"""What came of a candidate before its turn on a device, as the process that builds it reports."""

from __future__ import annotations

import platform
from importlib.metadata import version

from evaluator.evaluation import Evaluation
from evaluator.hardware.conditions import conditions
from evaluator.judge.rejection import Rejection
from evaluator.record import Record


class BuiltAhead(Record):
    seconds: float = 0.0
    cached: bool = True
    refused: Evaluation | None = None
    """The last word on a candidate that needs no device any more; None: it is to be judged."""


def refused_early(why: Rejection, device: str, note: str, **known: object) -> Evaluation:
    """The verdict on a candidate that was never on the `device`."""
    said = {"status": why.status, "reason": why.reason, "message": why.message}
    # What state the device is in says nothing of this candidate.
    versions = {"torch": version("torch"), "python": platform.python_version()}
    state = conditions("cpu") | {"judged_on": None, "threads": 1} | versions
    more = {"detail": why.detail, "device": device, "conditions": state, "notes": (note,)}
    return Evaluation.model_validate(said | more | known)
