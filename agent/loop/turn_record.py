"""The end of a turn: what it has, its answer and its settings, as the one line that is kept."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent.config.feedback_spec import Component, Control
from agent.loop.proposal import memory_before
from agent.record.turn import Turn, TurnRecord, TurnSeconds
from tools.advice.score import score
from tools.execute import size_class_of

if TYPE_CHECKING:
    from agent.loop.deps import Deps
    from agent.record.turn import PendingTurn
    from agent.record.turn_log import TurnKey
    from evaluator.evaluation import Evaluation
    from tools.profiling.advice import AdviceScore


def turn_record(deps: Deps, key: TurnKey, turn: PendingTurn) -> TurnRecord:
    """The record of a turn that has been judged."""
    config, problem, verdict = deps.config, deps.problem, turn.evaluation
    assert verdict is not None
    answer = deps.store.completion(turn.completion).completion
    took = {"model": answer.seconds, "profile": turn.profile_seconds}
    so_far: dict[str, Any] = {name: getattr(turn, name) for name in Turn.model_fields}
    return TurnRecord(
        **so_far,
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
        size_class=size_class_of(config.first_device),
        backend=config.backend,
        device=verdict.device or deps.device_name,
        finish_reason=answer.finish_reason,
        advice_scores=_advice_scores(deps, key, turn),
        usage=turn.wasted + answer.usage,
        attempts=answer.attempts,
        seconds=judging_seconds(verdict).model_copy(update=took),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def judging_seconds(evaluation: Evaluation) -> TurnSeconds:
    """What an evaluation took."""
    seconds = evaluation.seconds
    judge = seconds.judge + seconds.audit
    return TurnSeconds(build=seconds.build, judge=judge, device=seconds.device)


def _advice_scores(deps: Deps, key: TurnKey, turn: PendingTurn) -> tuple[AdviceScore, ...]:
    """What became of the advice that this turn's prompt gave: that of the kernel to refine."""
    advised = deps.config.shown_feedback.control_of(Component.ADVICE) is Control.REAL
    if not advised or turn.profile is None:
        return ()
    base = memory_before(deps, key).base
    if base is None or base.profile is None:
        return ()
    return tuple(score(advice, base.profile, turn.profile) for advice in base.profile.advice)
