"""What came of a candidate before its turn on a device, as the process that builds it reports."""

from __future__ import annotations

from evaluator.evaluation import Evaluation
from evaluator.record import Record


class BuiltAhead(Record):
    seconds: float = 0.0
    cached: bool = True
    refused: Evaluation | None = None
    """The last word on a candidate that needs no device any more; None: it is to be judged."""
