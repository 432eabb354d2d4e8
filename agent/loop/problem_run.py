"""One problem's way through a run: its samples, what ended them, and what they came to."""

from __future__ import annotations

import threading

from agent.config.schedule import samples_of, turns_of
from agent.llm.errors import ModelInterruptedError, ModelRefusedError
from agent.loop.confirm import confirm
from agent.loop.deps import Deps
from agent.loop.machine import Machine
from agent.loop.nodes import why_stop
from agent.record.events import ProblemFinished, ProblemStarted
from agent.record.result import ProblemResult, Stop
from agent.record.turn_log import TurnKey
from evaluator.errors import InfrastructureError


class ProblemRun:
    """Takes the samples of one problem through the graph, from several threads."""

    def __init__(self, deps: Deps, machine: Machine) -> None:
        self._deps = deps
        self._machine = machine
        self._lock = threading.Lock()
        self._left = len(samples_of(deps.config))
        self._started = False
        self._error = ""
        self._interrupted = False

    def take(self, sample: int) -> None:
        """Take one sample as far as the budget, a stop or an error lets it. Raises
        `ModelRefusedError`; every other failure of ours is kept for `result`."""
        self._start()
        try:
            self._walk(sample)
        except ModelInterruptedError:
            self._interrupted = True
        except ModelRefusedError:
            raise
        except InfrastructureError as error:
            self._error = self._error or str(error) or type(error).__name__
        finally:
            self._finish()

    @property
    def has_work(self) -> bool:
        """Whether some sample has a turn to take or to finish."""
        return any(self._may_go_on(sample) for sample in samples_of(self._deps.config))

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

    def _walk(self, sample: int) -> None:
        deps, problem = self._deps, self._deps.problem.id
        turn = deps.store.log.next_turn(problem, sample)
        if self._error or not self._may_go_on(sample):
            return
        turns = turns_of(deps.config) - turn
        self._machine.walk(deps, TurnKey(problem, sample, turn), turns)

    def _may_go_on(self, sample: int) -> bool:
        """A turn whose answer is paid for is finished in any case; a new one needs a budget."""
        turn = self._deps.store.log.next_turn(self._deps.problem.id, sample)
        if turn >= turns_of(self._deps.config) or self._deps.stop.is_set():
            return False
        pending = self._deps.store.pending_turn(TurnKey(self._deps.problem.id, sample, turn))
        paid = pending is not None and self._deps.store.has_completion(pending.completion)
        return paid or why_stop(self._deps) is None

    def _finish(self) -> None:
        with self._lock:
            self._left -= 1
            last = self._left == 0
        if last:
            self._confirm()
            self._deps.watch.notice(ProblemFinished(self._deps.problem.id, self.result()))

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
            stop = why_stop(deps) or (Stop.INTERRUPTED if self._interrupted else Stop.CALLS)
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
