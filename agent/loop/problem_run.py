"""One problem's way through a run: its turns, what ended them, and what they came to."""

from __future__ import annotations

import threading
from functools import partial

from agent.llm.failure import AnswerAwaitedError, ModelInterruptedError, ModelRefusedError
from agent.loop.deps import Deps
from agent.loop.graph import Machine
from agent.loop.nodes import with_retries
from agent.loop.problem_turns import ProblemTurns
from agent.record.confirmation import Confirmation, confirmation_of, confirming
from agent.record.events import JudgedAgain, JudgingAgain, ProblemFinished, ProblemStarted
from agent.record.proof import Proof, cases_proven
from agent.record.result import ProblemResult, Stop
from agent.record.turn_log import TurnKey
from evaluator.errors import InfrastructureError
from evaluator.evaluation import Candidate, EvaluationRequest


class ProblemRun:
    """Takes the turns of one problem through the graph, from several threads."""

    def __init__(self, deps: Deps, machine: Machine) -> None:
        self._deps = deps
        self._machine = machine
        self._lock = threading.Lock()
        self._started = False
        self._error = ""
        self._interrupted = False
        self._awaited: set[str] = set()

    @property
    def turns(self) -> ProblemTurns:
        return self._deps.turns

    def take(self, key: TurnKey) -> None:
        """Take the turn `key`, and then others while one is ready. Raises `ModelRefusedError`;
        every other failure is kept for `result`."""
        self._start()
        try:
            self._machine.walk(self._deps, key)
        except ModelInterruptedError:
            self._interrupted = True
        except AnswerAwaitedError as error:
            self._awaited.add(error.answer)
        except ModelRefusedError:
            raise
        except InfrastructureError as error:
            self._error = self._error or str(error) or type(error).__name__
            self.turns.close()

    def finish(self) -> None:
        """Called once no thread takes a turn, and none is left to begin."""
        self._start()
        self._confirm()
        deps, result = self._deps, self.result()
        found = result.confirmation
        deps.store.save_proof(deps.problem.id, self._proof(found) if found else None)
        deps.watch.notice(ProblemFinished(deps.problem.id, result))

    def _proof(self, found: Confirmation) -> Proof:
        deps = self._deps
        return Proof(
            problem=deps.problem.id,
            candidate=found.candidate,
            backend=deps.config.backend,
            settings=confirming(deps.settings),
            cases=cases_proven(deps.problem, deps.settings),
            evaluation=found.evaluation,
            weights=deps.problem.weights,
        )

    def _start(self) -> None:
        deps = self._deps
        with self._lock:
            if self._started:
                return
            self._started = True
            best = deps.store.keep_best(deps.problem.id)
            known = deps.store.log.progress(deps.problem.id)
            problem = deps.problem.id
            deps.watch.notice(ProblemStarted(problem, known.turns, best, known.spent))

    def _confirm(self) -> None:
        if self._error or self._interrupted or self._awaited or self._deps.stop.is_set():
            return
        try:
            confirm(self._deps)
        except InfrastructureError as error:
            self._error = f"confirming the best kernel: {str(error) or type(error).__name__}"

    def result(self) -> ProblemResult:
        deps, problem = self._deps, self._deps.problem.id
        best = deps.store.keep_best(problem)
        confirmations = deps.store.confirmations(problem)
        struck = tuple(each for each in confirmations if not each.holds)
        stated = [each for each in confirmations if not each.chooses]
        if best is not None and 0 < deps.config.confirm <= len(struck):
            best = None
        known = deps.store.log.progress(problem)
        if self._error:
            stop = Stop.ERROR
        elif limit := deps.turns.why_stop():
            stop = limit
        elif self._interrupted:
            stop = Stop.INTERRUPTED
        else:
            stop = Stop.ANSWERS if self._awaited else Stop.CALLS
        return ProblemResult(
            problem=problem,
            best=best,
            confirmation=next((c for c in stated if best and c.candidate == best.candidate), None),
            struck=struck,
            last=known.last,
            best_path=deps.store.best_path(problem) if best else None,
            turns=known.turns,
            correct=known.correct,
            spent=deps.ledger.spent(problem),
            stop=stop,
            awaited=tuple(sorted(self._awaited)) if stop is Stop.ANSWERS else (),
            error=self._error,
        )


def confirm(deps: Deps) -> None:
    """Judge the best kernel from nothing; where one fails the next best, as often as allowed. Where
    others may be as fast, one is chosen before by measuring each.

    Each verdict is kept at once, so a command that goes on repeats none. Raises
    `InfrastructureError` where this system keeps failing.
    """
    store, problem = deps.store, deps.problem.id
    while True:
        known = store.confirmations(problem)
        if [each.holds for each in known].count(False) >= deps.config.confirm:
            return
        contenders, measured = store.contenders(problem), {each.candidate for each in known}
        due = next((turn for turn in contenders if turn.candidate not in measured), None)
        chooses = due is not None and len(contenders) > 1
        best = due if chooses else store.best(problem)
        if best is None or best.candidate is None:
            return
        if (best.candidate, chooses) in {(each.candidate, each.chooses) for each in known}:
            return
        candidate = Candidate(source=store.kernel(best.candidate), backend=deps.config.backend)
        settings = confirming(deps.settings, chooses=chooses)
        request = EvaluationRequest.of(
            deps.problem, settings, candidate=candidate, is_second=True, chooses=chooses
        )
        deps.watch.notice(JudgingAgain(problem))
        judged = with_retries(partial(deps.executor.evaluate, request))
        found = confirmation_of(best, judged, chooses=chooses)
        store.save_confirmation(found)
        deps.watch.notice(JudgedAgain(problem, found))
