"""How much a candidate may have built, in all its processes together."""

from __future__ import annotations

from evaluator.builder.builder import Builder
from evaluator.evaluation import Status
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.judge.rejection import Rejection
from evaluator.reason import Reason

MOST_BUILDS = 128
"""Every process that a candidate is judged in asks again, though what is cached comes at once: for
twenty extensions there is room at five sizes."""
MOST_TIMES = 4
"""How many times as long as one compiler all builds together may take, and one of them."""


class BuildAllowance:
    """Has one candidate's sources built, within limits.

    What builds take does not count towards the limit of an import or a call: without one of their
    own a candidate that builds in a loop would hold its device for ever.
    """

    def __init__(self, builder: Builder, timeout_s: float) -> None:
        """`timeout_s` bounds each compiler run."""
        self._builder = builder
        self._timeout_s = timeout_s
        self.asked = 0
        self.seconds = 0.0
        self.cached = True
        """Whether all that was asked for was found built."""

    def build(self, order: BuildRequest) -> BuildOutcome:
        """Build one extension; raises `Rejection` once the candidate has had its share."""
        if self.asked == MOST_BUILDS:
            raise Rejection(
                Status.RUNTIME_ERROR,
                Reason.TOO_MANY_BUILDS,
                f"load_inline or load was called more than {MOST_BUILDS} times; build each "
                "extension once, at import, and keep it",
            )
        if self.seconds >= MOST_TIMES * self._timeout_s:
            raise Rejection(
                Status.TIMEOUT,
                Reason.BUILD_TIMEOUT,
                f"the builds took longer than {MOST_TIMES * self._timeout_s:g} s together",
            )
        self.asked += 1
        outcome = self._builder.build(order, self._timeout_s - self.seconds / MOST_TIMES)
        self.seconds += outcome.seconds
        self.cached &= outcome.cached
        return outcome
