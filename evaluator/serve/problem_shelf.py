"""The problems that a server judges candidates on: those of its suite, by name."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

from problems.errors import UnknownProblemError
from problems.loader import load_problem
from problems.problem import Problem


class ProblemShelf:
    """Finds problems as `evaluator.check` does, but no files of this machine.

    What was read once stays as it was until the server ends. Safe for several threads.
    """

    def __init__(self, suite: Path | None) -> None:
        """Raises `UsageError` for a suite that can't be found."""
        self._suite = suite
        self._lock = threading.Lock()
        self._found: dict[str, Problem] = {}
        with suppress(UnknownProblemError):
            self.find("")  # a suite that is there says that it has no such

    def find(self, name: str) -> Problem:
        """Raises `UsageError` for a name that the suite does not have, or has twice."""
        # As the loader reads names: however clients spell one, it is kept once.
        key = name.removesuffix(".py").lower()
        with self._lock:
            if key not in self._found:
                problem = load_problem(name, self._suite, files=False)
                self._found[key] = self._found.setdefault(problem.id.lower(), problem)
            return self._found[key]
