"""What the judge does for a problem before a model is billed for it: it sees that it can judge it,
and what PyTorch itself reaches."""

from __future__ import annotations

import threading
from typing import Literal

from evaluator.errors import UnusableReferenceError
from evaluator.executor.executor import Executor
from evaluator.rival import CheckRequest, Rival
from evaluator.settings import Settings
from problems.problem import Problem


class ProblemCheck:
    """The check of one problem. It passes once a command; safe to call from several threads."""

    def __init__(
        self,
        executor: Executor,
        problem: Problem,
        settings: Settings,
        rival: Literal["none", "eager", "compile"] = "none",
    ) -> None:
        """`rival`: what of PyTorch is timed."""
        self._executor = executor
        request = CheckRequest.of(problem, settings)
        self._request = request.model_copy(update={"rival": rival})
        self._lock = threading.Lock()
        self._found: Rival | None = None
        self._unusable: UnusableReferenceError | None = None

    def run(self) -> Rival:
        """See that the problem can be judged, unless that is known.

        Raises `InfrastructureError`. A reference that cannot run is not tried again; any other
        failure may pass, and the next call tries again.
        """
        with self._lock:
            if self._unusable is not None:
                raise self._unusable
            if self._found is None:
                try:
                    self._found = self._executor.check(self._request)
                except UnusableReferenceError as error:
                    self._unusable = error
                    raise
            return self._found
