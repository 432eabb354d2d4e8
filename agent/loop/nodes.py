"""The four things that a turn does: propose, execute, profile, decide.

Each is `(state, runtime) -> update`: it takes the turn so far and returns it with what it adds.
Every step is journaled before the next one begins. A node begins by looking at what the turn has
already, so that it may be run again after a kill: what was paid for is not bought twice, what was
judged is not judged twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar

from agent.config.feedback_spec import Component, Control
from agent.config.schedule import call_seed, schedule_of
from agent.llm.failure import ModelError
from agent.loop.deps import Deps
from agent.loop.next_prompt import (
    check_problem,
    feedback_on,
    memory_before,
    prompt_with,
    refined_by,
)
from agent.prompt.answer import AnswerSoFar, Extraction, extract
from agent.record.completion import CompletionRequest, Message
from agent.record.durable import StoreError
from agent.record.events import (
    Evaluated,
    ModelAnswered,
    Profiled,
    TurnRecorded,
    TurnStarted,
    Waiting,
)
from agent.record.result import Spent, charge_for, charge_for_wasted
from agent.record.store import request_hash
from agent.record.turn import PendingTurn, Turn, TurnRecord, TurnSeconds, Work
from agent.record.turn_log import TurnKey, key_of
from evaluator.errors import InfrastructureError, IsolationError, UnusableReferenceError
from evaluator.evaluation import Candidate, Evaluation, EvaluationRequest, Seconds, Status
from evaluator.reason import Reason
from problems.function import entry_names, with_model
from problems.sizes import SizeClass
from tools.advice.score import score
from tools.execute import execute as judge
from tools.profiling.profile_report import AdviceScore, Profile

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

T = TypeVar("T")
ATTEMPTS = 3
"""How often a check or an evaluation is tried when this system fails, and not the kernel."""


class TurnState(TypedDict):
    """What the graph carries from node to node: the turn in progress, as a value. Its texts lie in
    the run directory under their hashes."""

    key: TurnKey
    turn: PendingTurn | None
    """None before `propose`."""
    ended: bool
    """No turn follows."""


class TurnUpdate(TypedDict, total=False):
    """What a node changes. LangGraph ignores a misspelt key without a word; mypy does not."""

    key: TurnKey
    turn: PendingTurn | None
    ended: bool


def propose(state: TurnState, runtime: Runtime[Deps]) -> TurnUpdate:
    """Render the prompt and get its answer; both are stored before anything is done with them.

    A turn that an earlier command began goes on where that one ended. Before a prompt is written
    the judge has checked its problem: one that cannot be judged costs nothing.
    """
    deps, key = runtime.context, state["key"]
    store = deps.store
    turn = store.pending_turn(key)
    if turn is None:
        with _announcing_retries(runtime, key):
            check_problem(deps)
    deps.watch.notice(TurnStarted(*key, deps.turns.call_of(key)))
    turn = turn or store.journal(key, _new_turn(deps, key))
    if not store.has_completion(turn.completion):
        turn = _answered(deps, key, turn)
    deps.watch.notice(ModelAnswered(*key))
    return {"turn": turn}


def _new_turn(deps: Deps, key: TurnKey) -> PendingTurn:
    store, memory = deps.store, memory_before(deps, key)
    feedback, shuffled = feedback_on(deps, key, memory)
    refined = refined_by(deps, memory)
    prompt = prompt_with(deps, key, memory, feedback)
    return PendingTurn(
        prompt=store.save_prompt(prompt.text),
        completion=request_hash(_model_request(deps, key, prompt.text)),
        parent=refined.candidate if refined else None,
        prompt_ledger=prompt.ledger,
        shuffled_with=shuffled,
    )


def _model_request(deps: Deps, key: TurnKey, prompt: str) -> CompletionRequest:
    config = deps.config
    return CompletionRequest(
        model=config.model,
        messages=(Message(role="user", content=prompt),),
        temperature=config.temperature,
        seed=call_seed(config, deps.turns.call_of(key)),
        arguments=config.model_args,
        problem=key.problem,
        sample=key.sample,
        turn=key.turn,
    )


def _answered(deps: Deps, key: TurnKey, turn: PendingTurn) -> PendingTurn:
    request = _model_request(deps, key, deps.store.prompt(turn.prompt))
    try:
        with deps.store.in_flight(key, turn, Work.MODEL) as turn:
            answer = deps.client.complete(
                request,
                lambda text: deps.watch.notice(Waiting(*key, text)),
                AnswerSoFar(
                    lambda source: _build_ahead(deps, key, source), entry_names(deps.problem)
                ),
            )
            deps.store.save_completion(request, turn.prompt, answer)
            deps.store.journal(key, turn)
    except ModelError as error:
        if error.usage is not None:
            deps.store.journal(key, turn.updated(wasted=turn.wasted + error.usage))
            deps.ledger.charge(key.problem, charge_for_wasted(error.usage))
        raise
    charge = charge_for(answer.usage, TurnSeconds(model=answer.seconds))
    deps.ledger.charge(key.problem, charge)
    return turn


def _build_ahead(deps: Deps, key: TurnKey, source: str) -> None:
    """Begin to build a kernel while the answer still streams; only the cache keeps it."""
    candidate = _candidate(deps, source)
    if deps.deduplication.earlier(key.problem, candidate.hash, Work.JUDGE) is None:
        request = EvaluationRequest.of(deps.problem, deps.settings, candidate=candidate)
        deps.executor.build_ahead(request)


def execute(state: TurnState, runtime: Runtime[Deps]) -> TurnUpdate:
    """Take the kernel out of the answer and have it built, verified and timed."""
    deps, key, turn = runtime.context, state["key"], _turn(state)
    if turn.evaluation is None:
        answer = deps.store.completion(turn.completion).completion
        extraction, candidate = kernel_in(deps, answer.text, answer.finish_reason)
        turn = turn.updated(plan=extraction.plan)
        if candidate is None:
            verdict = Evaluation(
                status=Status.NO_CODE, reason=Reason.NO_CODE, message=extraction.problem
            )
            turn = deps.store.journal(key, turn.updated(evaluation=verdict))
        else:
            turn = turn.updated(candidate=deps.store.save_kernel(candidate))
            with deps.deduplication.alone(key.problem, candidate.hash):
                turn = _judged(runtime, key, candidate, turn)
    assert turn.evaluation is not None
    deps.deduplication.learn(key, turn)  # an earlier command may have judged it
    deps.watch.notice(Evaluated(*key, turn.evaluation))
    return {"turn": turn}


def kernel_in(
    deps: Deps, text: str, finish_reason: str = "stop"
) -> tuple[Extraction, Candidate | None]:
    """What an answer holds, and the kernel that is judged; None: it holds none."""
    found = extract(text, finish_reason, entry_names(deps.problem))
    return found, None if found.source is None else _candidate(deps, found.source)


def _candidate(deps: Deps, source: str) -> Candidate:
    return Candidate(source=with_model(source, deps.problem), backend=deps.config.backend)


def _judged(
    runtime: Runtime[Deps], key: TurnKey, candidate: Candidate, turn: PendingTurn
) -> PendingTurn:
    deps = runtime.context
    with deps.store.in_flight(key, turn, Work.JUDGE) as turn:
        if found := deps.deduplication.earlier(key.problem, candidate.hash, Work.JUDGE):
            first, earlier = found
            assert earlier.evaluation is not None
            verdict = earlier.evaluation.model_copy(update={"seconds": Seconds()})
            turn = turn.updated(evaluation=verdict, judged_with=str(first))
            return deps.store.journal(key, turn)
        with _announcing_retries(runtime, key):
            verdict = judge(deps.executor, deps.problem, candidate, deps.settings)
        turn = deps.store.journal(key, turn.updated(evaluation=verdict))
    deps.deduplication.learn(key, turn)
    deps.ledger.charge(key.problem, Spent(seconds=seconds_of(turn)))
    return turn


@contextmanager
def _announcing_retries(runtime: Runtime[Deps], key: TurnKey) -> Iterator[None]:
    """Report a failure of this system after which the node is run again."""
    try:
        yield
    except InfrastructureError as error:
        attempt = runtime.execution_info.node_attempt if runtime.execution_info else 1
        if worth_retrying(error) and attempt < ATTEMPTS:
            runtime.context.watch.notice(Waiting(*key, str(error)))
        raise


def profile(state: TurnState, runtime: Runtime[Deps]) -> TurnUpdate:
    """Profile a correct kernel. A profiler that fails costs the turn its profile, no more."""
    deps, key, turn = runtime.context, state["key"], _turn(state)
    kernel = turn.candidate
    assert kernel is not None
    if deps.config.shared_drafts and key.turn == schedule_of(deps.config).turns - 1:
        return {"turn": turn}  # no prompt will show it
    if not turn.is_profiled:
        with deps.deduplication.alone(key.problem, kernel):
            turn = _profiled(deps, key, turn)
    deps.deduplication.learn(key, turn)
    if turn.profile is not None:
        deps.store.save_profile(kernel, turn.profile)
    deps.watch.notice(Profiled(*key, turn.profile_error))
    return {"turn": turn}


def _profiled(deps: Deps, key: TurnKey, turn: PendingTurn) -> PendingTurn:
    verdict, kernel = turn.evaluation, turn.candidate
    assert verdict is not None and kernel is not None
    began, error = deps.clock(), ""
    with deps.store.in_flight(key, turn, Work.PROFILE) as turn:
        if taken := deps.deduplication.earlier(key.problem, kernel, Work.PROFILE):
            first, earlier = taken
            turn = turn.updated(profile=earlier.profile, profiled_with=str(first))
            return deps.store.journal(key, turn)
        try:
            found = profile_of(deps, kernel, verdict)
        except InfrastructureError as failure:
            found, error = None, str(failure) or type(failure).__name__
        took = found.seconds if found and found.seconds else deps.clock() - began
        turn = turn.updated(profile=found, profile_error=error, profile_seconds=took)
        deps.store.journal(key, turn)
    deps.deduplication.learn(key, turn)
    deps.ledger.charge(key.problem, Spent(seconds=TurnSeconds(profile=took)))
    return turn


def profile_of(deps: Deps, kernel: str, verdict: Evaluation) -> Profile:
    """Raises `InfrastructureError`."""
    candidate = Candidate(source=deps.store.kernel(kernel), backend=deps.config.backend)
    request = EvaluationRequest.of(deps.problem, deps.settings, candidate=candidate)
    return deps.profiler(request, verdict)


def decide(state: TurnState, runtime: Runtime[Deps]) -> TurnUpdate:
    """Record the turn, keep the best kernel where a person finds it, and say what comes next."""
    deps, key = runtime.context, state["key"]
    record = turn_record(deps, key, _turn(state))
    deps.store.record(record)
    best = deps.store.keep_best(key.problem)
    is_best = best is not None and key_of(best) == key
    spent = deps.ledger.spent(key.problem)
    deps.watch.notice(TurnRecorded(key.problem, record, is_best, spent))
    following = deps.turns.claim()
    return {"key": following or key, "turn": None, "ended": following is None}


def after_execute(state: TurnState) -> Literal["profile", "decide"]:
    return "profile" if _turn(state).is_correct else "decide"


def after_decide(state: TurnState) -> Literal["propose", "end"]:
    return "end" if state["ended"] else "propose"


def worth_retrying(error: Exception) -> bool:
    """This system failed in a way that another attempt may get past."""
    lasting = UnusableReferenceError | StoreError | IsolationError | ModelError
    return isinstance(error, InfrastructureError) and not isinstance(error, lasting)


def with_retries(call: Callable[[], T]) -> T:
    """Call up to `ATTEMPTS` times, as a node of the graph is called."""
    for _ in range(ATTEMPTS - 1):
        try:
            return call()
        except InfrastructureError as error:
            if not worth_retrying(error):
                raise
    return call()


def _turn(state: TurnState) -> PendingTurn:
    turn = state["turn"]
    assert turn is not None, f"{state['key']} is not proposed yet"
    return turn


def turn_record(deps: Deps, key: TurnKey, turn: PendingTurn) -> TurnRecord:
    config, problem, verdict = deps.config, deps.problem, turn.evaluation
    assert verdict is not None
    answer = deps.store.completion(turn.completion).completion
    return TurnRecord(
        **{name: getattr(turn, name) for name in Turn.model_fields},
        suite=problem.suite,
        problem=problem.id,
        problem_hash=problem.hash,
        category=problem.category,
        sample=key.sample,
        turn=key.turn,
        call=deps.turns.call_of(key),
        strategy=config.strategy,
        feedback=str(config.feedback),
        model=config.model,
        model_answered=answer.model_answered,
        temperature=config.temperature,
        run_seed=config.seed,
        protocol=config.protocol,
        precision=config.precision,
        size_class=SizeClass.of(config.first_device),
        backend=config.backend,
        device=verdict.device or deps.device_name,
        finish_reason=answer.finish_reason,
        advice_scores=scores_of(deps, key, turn.profile),
        usage=turn.wasted + answer.usage,
        attempts=answer.attempts,
        seconds=seconds_of(turn, answer.seconds),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def seconds_of(turn: PendingTurn, model: float = 0.0) -> TurnSeconds:
    """What a turn has taken so far; `model`: waiting for the answer."""
    judged = turn.evaluation.seconds if turn.evaluation else Seconds()
    return TurnSeconds(
        model=model,
        build=judged.build,
        judge=judged.judge + judged.audit,
        profile=turn.profile_seconds,
        device=judged.device,
    )


def scores_of(deps: Deps, key: TurnKey, profile: Profile | None) -> tuple[AdviceScore, ...]:
    """Scores, by a turn's profile, of the advice in its prompt, which was given for the kernel to
    refine."""
    advised = deps.config.shown_feedback.control_of(Component.ADVICE) is Control.REAL
    if not advised or profile is None:
        return ()
    base = memory_before(deps, key).base
    if base is None or base.profile is None:
        return ()
    return tuple(score(advice, base.profile, profile) for advice in base.profile.advice)
