"""One problem's way through a run: its samples, what ended them, and what they came to."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING, cast

from agent.budget import spent_on
from agent.deps import Deps
from agent.events import ProblemFinished, ProblemStarted
from agent.llm.errors import ModelInterruptedError, ModelRefusedError
from agent.nodes import why_stop
from agent.result import ProblemResult, Stop
from agent.state import TurnState, first_state
from agent.strategies import samples_of, turns_of
from agent.turn_log import TurnKey
from evaluator.errors import InfrastructureError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

    Graph = CompiledStateGraph[TurnState, Deps, TurnState, TurnState]

STEPS_A_TURN = 4
"""Nodes that a turn goes through at most."""


class Course:
    """Takes the samples of one problem through the graph, from several threads."""

    def __init__(self, deps: Deps, graph: Graph) -> None:
        self._deps = deps
        self._graph = graph
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
        except sqlite3.Error as error:
            where = self._deps.store.path / "checkpoints.sqlite"
            self._error = f"{where}: {error}; nothing is lost by deleting it and going on"
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
            turns = deps.store.log.of(deps.problem.id)
            cost = spent_on(turns).cost_usd
            deps.watch.notice(ProblemStarted(deps.problem.id, len(turns), best, cost))

    def _walk(self, sample: int) -> None:
        deps, problem = self._deps, self._deps.problem.id
        turn = deps.store.log.next_turn(problem, sample)
        if self._error or not self._may_go_on(sample):
            return
        settings: RunnableConfig = {
            "configurable": {"thread_id": f"{problem}/{sample}"},
            # The budget ends a run. This only catches a graph that runs in circles.
            "recursion_limit": STEPS_A_TURN * (turns_of(deps.config) - turn) + STEPS_A_TURN,
        }
        # The bookmark counts only where it agrees with the record, which is the truth.
        bookmark = self._graph.get_state(settings)
        agrees = bool(bookmark.next) and bookmark.values.get("turn") == turn
        agrees = agrees and deps.store.draft(TurnKey(problem, sample, turn)) is not None
        start = None if agrees else first_state(problem, sample, turn)
        self._graph.invoke(cast(TurnState, start), settings, context=deps, durability="sync")

    def _may_go_on(self, sample: int) -> bool:
        """A turn whose answer is paid for is finished in any case; a new one needs a budget."""
        turn = self._deps.store.log.next_turn(self._deps.problem.id, sample)
        if turn >= turns_of(self._deps.config) or self._deps.stop.is_set():
            return False
        draft = self._deps.store.draft(TurnKey(self._deps.problem.id, sample, turn))
        paid = draft is not None and self._deps.store.has_completion(draft.completion)
        return paid or why_stop(self._deps) is None

    def _finish(self) -> None:
        with self._lock:
            self._left -= 1
            last = self._left == 0
        if last:
            self._deps.watch.notice(ProblemFinished(self._deps.problem.id, self.result()))

    def result(self) -> ProblemResult:
        """What the problem has come to so far."""
        deps, problem = self._deps, self._deps.problem.id
        best = deps.store.keep_best(problem)
        turns = deps.store.log.of(problem)
        if self._error:
            stop = Stop.ERROR
        else:
            stop = why_stop(deps) or (Stop.INTERRUPTED if self._interrupted else Stop.CALLS)
        return ProblemResult(
            problem=problem,
            best=best,
            last=max(turns, key=lambda turn: turn.call, default=None),
            best_path=deps.store.best_path(problem) if best else None,
            turns=len(turns),
            spent=deps.ledger.spent(problem),
            stop=stop,
            error=self._error,
        )
