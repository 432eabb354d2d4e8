"""The four things that a turn does: propose, execute, profile, decide.

Each is `(state, runtime) -> update` and begins by looking at what the run directory knows already,
so that it may be run again after a kill: what was paid for is not bought twice, what was judged is
not judged twice. Every step is on disk before the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from agent.config.schedule import call_index, turns_of
from agent.llm.errors import ModelError
from agent.loop.budget import exhausted
from agent.loop.policy import is_near_sol, is_stale
from agent.loop.proposal import new_draft, request_of
from agent.loop.state import TurnState, TurnUpdate
from agent.loop.turn_record import judging_seconds, turn_record
from agent.prompt.answer import extract
from agent.record.charge import charge_for, charge_for_nothing
from agent.record.draft import Draft, Stage
from agent.record.durable import StoreError
from agent.record.events import (
    Evaluated,
    ModelAnswered,
    Profiled,
    TurnRecorded,
    TurnStarted,
    Waiting,
)
from agent.record.result import Spent, Stop
from agent.record.turn import TurnSeconds
from agent.record.turn_log import TurnKey, key_of
from evaluator.errors import InfrastructureError, IsolationError, UnusableReferenceError
from evaluator.evaluation import Candidate, Evaluation, EvaluationRequest, Seconds, Status
from evaluator.reason import Reason
from tools.execute import evaluation_request
from tools.execute import execute as judge

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

    from agent.loop.deps import Deps

ATTEMPTS = 3
"""How often a check or an evaluation is tried when our own side breaks."""


def propose(state: TurnState, runtime: Runtime[Deps]) -> TurnUpdate:
    """Render the prompt and get its answer; both are stored before anything is done with them.

    Before the first call for a problem the judge sets it up: a problem that cannot be judged costs
    nothing.
    """
    deps, key = runtime.context, _key(state)
    store = deps.store
    call = call_index(key.sample, key.turn)
    draft = store.draft(key)
    if draft is None or not store.has_completion(draft.completion):
        with _announcing_retries(runtime, key):
            deps.check.run()
    deps.watch.notice(TurnStarted(key.problem, key.sample, key.turn, call))
    draft = draft or new_draft(deps, key)
    if not store.has_completion(draft.completion):
        request = request_of(deps, key, store.prompt(draft.prompt))
        try:
            with store.in_flight(key, draft, Stage.MODEL) as draft:
                answer = deps.client.complete(
                    request, lambda text: deps.watch.notice(Waiting(*key, text))
                )
                completion = store.save_completion(request, draft.prompt, answer)
                store.save_draft(key, draft.model_copy(update={"completion": completion}))
        except ModelError as error:
            if error.usage is not None:
                wasted = draft.wasted + error.usage
                store.save_draft(key, draft.model_copy(update={"wasted": wasted}))
                deps.ledger.charge(key.problem, charge_for_nothing(error.usage))
            raise
        charge = charge_for(answer.usage, TurnSeconds(model=answer.seconds))
        deps.ledger.charge(key.problem, charge)
    answer = store.completion(_draft(deps, key).completion).completion
    deps.watch.notice(ModelAnswered(*key, answer.usage, answer.seconds, answer.finish_reason))
    return {}


def execute(state: TurnState, runtime: Runtime[Deps]) -> TurnUpdate:
    """Take the kernel out of the answer and have it built, verified and timed."""
    deps, key = runtime.context, _key(state)
    store, draft = deps.store, _draft(deps, key)
    if draft.evaluation is None:
        answer = store.completion(draft.completion).completion
        extraction = extract(answer.text, answer.finish_reason)
        if extraction.source is None:
            verdict = Evaluation(
                status=Status.NO_CODE, reason=Reason.NO_CODE, message=extraction.problem
            )
            judged = draft.model_copy(update={"plan": extraction.plan, "evaluation": verdict})
            store.save_draft(key, judged)
        else:
            candidate = Candidate(source=extraction.source, backend=deps.config.backend)
            found = {"candidate": store.save_kernel(candidate), "plan": extraction.plan}
            with deps.deduplication.alone(key.problem, candidate.hash):
                _judge(runtime, key, candidate, draft.model_copy(update=found))
        draft = _draft(deps, key)
    assert draft.evaluation is not None
    deps.deduplication.learn(key, draft)  # an earlier command may have judged it
    deps.watch.notice(Evaluated(*key, draft.evaluation))
    correct = draft.evaluation.status is Status.CORRECT
    return {"wants_profile": correct and deps.config.shown_feedback.needs_profile}


def _judge(runtime: Runtime[Deps], key: TurnKey, candidate: Candidate, draft: Draft) -> None:
    """Have a kernel judged, or take over what was said of an identical one."""
    deps = runtime.context
    with deps.store.in_flight(key, draft, Stage.JUDGE) as draft:
        earlier = deps.deduplication.told(key.problem, candidate.hash, Stage.JUDGE)
        if earlier is not None and earlier.evaluation is not None:
            verdict = earlier.evaluation.model_copy(update={"seconds": Seconds()})
            taken = {"evaluation": verdict, "judged_with": str(earlier.key)}
            deps.store.save_draft(key, draft.model_copy(update=taken))
            return
        with _announcing_retries(runtime, key):
            verdict = judge(deps.executor, deps.problem, candidate, deps.settings)
        draft = draft.model_copy(update={"evaluation": verdict})
        deps.store.save_draft(key, draft)
    deps.deduplication.learn(key, draft)
    deps.ledger.charge(key.problem, Spent(seconds=judging_seconds(verdict)))


@contextmanager
def _announcing_retries(runtime: Runtime[Deps], key: TurnKey) -> Iterator[None]:
    """Report a failure of ours that passes through and after which the node is run again."""
    try:
        yield
    except InfrastructureError as error:
        attempt = runtime.execution_info.node_attempt if runtime.execution_info else 1
        if worth_retrying(error) and attempt < ATTEMPTS:
            runtime.context.watch.notice(Waiting(*key, str(error)))
        raise


def profile(state: TurnState, runtime: Runtime[Deps]) -> TurnUpdate:
    """Profile a correct kernel. A profiler that fails costs the turn its profile, no more."""
    deps, key = runtime.context, _key(state)
    store, draft = deps.store, _draft(deps, key)
    if draft.profile is None and not draft.profile_error:
        assert draft.candidate is not None
        with deps.deduplication.alone(key.problem, draft.candidate):
            _profile(deps, key, draft)
        draft = _draft(deps, key)
    deps.deduplication.learn(key, draft)
    if draft.profile is not None and draft.candidate is not None:
        store.save_profile(draft.candidate, draft.profile)
    deps.watch.notice(Profiled(*key, draft.profile, draft.profile_error))
    return {}


def _profile(deps: Deps, key: TurnKey, draft: Draft) -> None:
    """Profile a kernel, or take over the profile of an identical one."""
    verdict, kernel = draft.evaluation, draft.candidate
    assert verdict is not None and kernel is not None
    began, error = deps.clock(), ""
    with deps.store.in_flight(key, draft, Stage.PROFILE) as draft:
        earlier = deps.deduplication.told(key.problem, kernel, Stage.PROFILE)
        if earlier is not None and earlier.profile is not None:
            taken = {"profile": earlier.profile, "profiled_with": str(earlier.key)}
            deps.store.save_draft(key, draft.model_copy(update=taken))
            return
        try:
            found = deps.profiler(_request_of(deps, draft), verdict)
        except InfrastructureError as failure:
            found, error = None, str(failure) or type(failure).__name__
        took = found.seconds if found and found.seconds else deps.clock() - began
        news = {"profile": found, "profile_error": error, "profile_seconds": took}
        draft = draft.model_copy(update=news)
        deps.store.save_draft(key, draft)
    deps.deduplication.learn(key, draft)
    deps.ledger.charge(key.problem, Spent(seconds=TurnSeconds(profile=took)))


def decide(state: TurnState, runtime: Runtime[Deps]) -> TurnUpdate:
    """Record the turn, keep the best kernel where a person finds it, and say what comes next."""
    deps, key = runtime.context, _key(state)
    record = turn_record(deps, key, _draft(deps, key))
    deps.store.record(record)
    best = deps.store.keep_best(key.problem)
    is_best = best is not None and key_of(best) == key
    spent = deps.ledger.spent(key.problem)
    deps.watch.notice(TurnRecorded(key.problem, record, is_best, spent.cost_usd))
    stop = why_stop(deps)
    turn = deps.store.log.next_turn(key.problem, key.sample)
    if stop is None and turn >= turns_of(deps.config):
        stop = Stop.CALLS
    return {"turn": turn, "wants_profile": False, "stop": stop or ""}


def why_stop(deps: Deps) -> Stop | None:
    """Why the problem gets no further call; None while it does."""
    if limit := exhausted(deps.config, deps.ledger.spent(deps.problem.id)):
        return limit
    progress = deps.store.log.progress(deps.problem.id)
    if is_near_sol(deps.config, progress):
        return Stop.NEAR_SOL
    if is_stale(deps.config, progress):
        return Stop.EARLY
    return Stop.INTERRUPTED if deps.stop.is_set() else None


def after_execute(state: TurnState) -> Literal["profile", "decide"]:
    """Only a correct kernel is profiled, and only where a prompt may say so."""
    return "profile" if state["wants_profile"] else "decide"


def after_decide(state: TurnState) -> Literal["propose", "end"]:
    """Another turn, unless there is a reason to stop."""
    return "end" if state["stop"] else "propose"


def worth_retrying(error: Exception) -> bool:
    """Our side broke in a way that another attempt may get past; asked by the graph's retries."""
    lasting = UnusableReferenceError | StoreError | IsolationError | ModelError
    return isinstance(error, InfrastructureError) and not isinstance(error, lasting)


def _key(state: TurnState) -> TurnKey:
    return TurnKey(state["problem"], state["sample"], state["turn"])


def _draft(deps: Deps, key: TurnKey) -> Draft:
    draft = deps.store.draft(key)
    assert draft is not None, f"{key} has no draft"
    return draft


def _request_of(deps: Deps, draft: Draft) -> EvaluationRequest:
    assert draft.candidate is not None
    source = deps.store.kernel(draft.candidate)
    candidate = Candidate(source=source, backend=deps.config.backend)
    return evaluation_request(deps.problem, candidate, deps.settings)
