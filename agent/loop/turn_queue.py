"""The turns that a run has left, for the threads that take them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from agent.loop.problem_run import ProblemRun
from agent.record.turn_log import TurnKey


class TurnQueue:
    """Hands out problems in their order, and more threads to one that has several turns ready.

    A thread waits where turns may become ready once others are recorded.
    """

    def __init__(self, problem_runs: Sequence[ProblemRun], changed: threading.Condition) -> None:
        """`changed` is that of the problems' turns."""
        self._open = dict.fromkeys(problem_runs, 0)
        """Problems that have not ended, with the number of threads at work on each."""
        self._changed = changed

    def work_off(self) -> None:
        """Take turns until no problem is left. Raises as `ProblemRun.take` does."""
        while (following := self._next()) is not None:
            problem_run, key = following
            if key is None:
                problem_run.finish()
                continue
            try:
                problem_run.take(key)
            finally:
                with self._changed:
                    self._open[problem_run] -= 1
                    self._changed.notify_all()

    def _next(self) -> tuple[ProblemRun, TurnKey | None] | None:
        """A problem with a turn to begin at, or with None once it is to be finished."""
        with self._changed:
            while self._open:
                for problem_run, threads in self._open.items():
                    if (key := problem_run.turns.claim()) is not None:
                        self._open[problem_run] += 1
                        return problem_run, key
                    if threads == 0:
                        del self._open[problem_run]
                        return problem_run, None
                self._changed.wait()
            return None
