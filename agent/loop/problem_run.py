"""One problem's way through a run: its turns, what ended them, and what they came to."""

from __future__ import annotations

import threading

from agent.llm.errors import ModelInterruptedError, ModelRefusedError
from agent.loop.confirm import confirm
from agent.loop.deps import Deps
from agent.loop.machine import Machine
from agent.loop.problem_turns import ProblemTurns
from agent.record.events import ProblemFinished, ProblemStarted
from agent.record.result import ProblemResult, Stop
from agent.record.turn_log import TurnKey
from evaluator.errors import InfrastructureError


class ProblemRun:
    """Takes the turns of one problem through the graph, from several threads."""

    def __init__(self, deps: Deps, machine: Machine) -> None:
        self._deps = deps
        self._machine = machine
        self._lock = threading.Lock()
        self._started = False
        self._error = ""
        self._interrupted = False

    @property
    def turns(self) -> ProblemTurns:
        """Those that are left."""
        return self._deps.turns

    def take(self, key: TurnKey) -> None:
        """Take the turn `key`, and then others while one is ready. Raises `ModelRefusedError`;
        every other failure of ours is kept for `result`."""
        self._start()
        try:
            self._machine.walk(self._deps, key)
        except ModelInterruptedError:
            self._interrupted = True
        except ModelRefusedError:
            raise
        except InfrastructureError as error:
            self._error = self._error or str(error) or type(error).__name__
            self.turns.close()

    def finish(self) -> None:
        """Once no thread takes a turn, and none is left to begin."""
        self._start()
        self._confirm()
        self._deps.watch.notice(ProblemFinished(self._deps.problem.id, self.result()))

    def _start(self) -> None:
        deps = self._deps
        with self._lock:
            if self._started:
                return
            self._started = True
            best = deps.store.keep_best(deps.problem.id)
            known = deps.store.log.progress(deps.problem.id)
            cost = known.spent.cost_usd
            deps.watch.notice(ProblemStarted(deps.problem.id, known.turns, best, cost))

    def _confirm(self) -> None:
        """Have the best kernel judged again, and the next best where it fails."""
        if self._error or self._interrupted or self._deps.stop.is_set():
            return
        try:
            confirm(self._deps)
        except InfrastructureError as error:
            self._error = f"confirming the best kernel: {str(error) or type(error).__name__}"

    def result(self) -> ProblemResult:
        """What the problem has come to so far."""
        deps, problem = self._deps, self._deps.problem.id
        best = deps.store.keep_best(problem)
        told = deps.store.confirmations(problem)
        struck = tuple(each for each in told if not each.holds)
        if best is not None and 0 < deps.config.confirm <= len(struck):
            best = None
        known = deps.store.log.progress(problem)
        if self._error:
            stop = Stop.ERROR
        else:
            stop = deps.turns.why_stop() or (Stop.INTERRUPTED if self._interrupted else Stop.CALLS)
        return ProblemResult(
            problem=problem,
            best=best,
            confirmation=next((c for c in told if best and c.candidate == best.candidate), None),
            struck=struck,
            last=known.last,
            best_path=deps.store.best_path(problem) if best else None,
            turns=known.turns,
            correct=known.correct,
            spent=deps.ledger.spent(problem),
            stop=stop,
            error=self._error,
        )
