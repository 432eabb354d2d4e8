"""Having a problem's best kernel judged again, once its turns have ended."""

from __future__ import annotations

from agent.loop.deps import Deps
from agent.loop.nodes import ATTEMPTS, worth_retrying
from agent.record.confirmation import confirmation_of, confirming
from agent.record.events import JudgedAgain, JudgingAgain
from evaluator.errors import InfrastructureError
from evaluator.evaluation import Candidate, Evaluation
from tools.execute import execute


def confirm(deps: Deps) -> None:
    """Judge the best kernel from nothing, and where it fails the next best, as often as allowed.

    Each verdict is kept at once, so a command that goes on repeats none. Raises
    `InfrastructureError` where our side keeps failing.
    """
    store, problem = deps.store, deps.problem.id
    told = {each.candidate: each.holds for each in store.confirmations(problem)}
    while list(told.values()).count(False) < deps.config.confirm:
        best = store.best(problem)
        if best is None or best.candidate is None or best.candidate in told:
            return
        source = store.kernel(best.candidate)
        deps.watch.notice(JudgingAgain(problem))
        candidate = Candidate(source=source, backend=deps.config.backend)
        found = confirmation_of(best, _judged(deps, candidate))
        store.save_confirmation(found)
        deps.watch.notice(JudgedAgain(problem, found))
        told[found.candidate] = found.holds


def _judged(deps: Deps, candidate: Candidate) -> Evaluation:
    for _ in range(ATTEMPTS - 1):
        try:
            return execute(deps.executor, deps.problem, candidate, confirming(deps.settings))
        except InfrastructureError as error:
            if not worth_retrying(error):
                raise
    return execute(deps.executor, deps.problem, candidate, confirming(deps.settings))
