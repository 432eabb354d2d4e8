"""Why a candidate's judgement ended early: unwound as an exception, reported as data."""

from __future__ import annotations

from evaluator.evaluation import Mismatch, Status
from evaluator.reason import Reason


class Rejection(Exception):  # noqa: N818 - a verdict, not an error of the judge
    """A candidate failed. Never leaves the judge: it becomes an `Evaluation`."""

    def __init__(
        self,
        status: Status,
        reason: Reason,
        message: str,
        *,
        detail: str = "",
        mismatch: Mismatch | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.detail = detail
        self.mismatch = mismatch


def protocol_broken(message: str) -> Rejection:
    return Rejection(Status.INTEGRITY, Reason.PROTOCOL_BROKEN, message)
