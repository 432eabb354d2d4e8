"""Whether a problem can be judged here: asked of the judge before a model is billed for it."""

from __future__ import annotations

import threading

from evaluator.errors import UnusableReferenceError
from evaluator.executor.executor import Executor
from evaluator.settings import Settings
from problems.problem import Problem
from tools.execute import problem_request


class ProblemCheck:
    """The check of one problem. It passes once a command; safe to call from several threads."""

    def __init__(self, executor: Executor, problem: Problem, settings: Settings) -> None:
        self._executor = executor
        self._request = problem_request(problem, settings)
        self._lock = threading.Lock()
        self._passed = False
        self._unusable: UnusableReferenceError | None = None

    def run(self) -> None:
        """Have the judge set the problem up and call its reference, unless it did so already.

        Raises `InfrastructureError`. A reference that cannot run is not tried again; any other
        failure may pass, and the next call tries again.
        """
        with self._lock:
            if self._unusable is not None:
                raise self._unusable
            if self._passed:
                return
            try:
                self._executor.check(self._request)
            except UnusableReferenceError as error:
                self._unusable = error
                raise
            self._passed = True
