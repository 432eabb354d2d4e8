"""What one machine asks another to profile."""

from __future__ import annotations

from evaluator.evaluation import Evaluation, EvaluationRequest
from evaluator.record import Record


class ProfileRequest(Record):
    """A candidate that was judged correct, and what the judge said."""

    request: EvaluationRequest
    evaluation: Evaluation
