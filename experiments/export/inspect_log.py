"""`inspect`: a run as a log of Inspect AI (`.eval`), for its viewer and its data frames.

| here | in the log |
| --- | --- |
| run | log; the suite is its task |
| problem | sample id |
| sample | epoch |
| turn | a user and an assistant message, a model event and an intermediate score |
| best kernel of a sample | the sample's output and scores |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.record.completion import Usage
from agent.record.durable import disk_errors_told
from evaluator.evaluation import Status
from experiments.analysis.run_facts import RunFacts, facts_of
from experiments.export.recorded_run import (
    RecordedRun,
    RecordedTurn,
    digest,
    outcome_of,
    recorded_runs,
)

if TYPE_CHECKING:
    from inspect_ai.event import Event
    from inspect_ai.log import EvalLog, EvalSample, EvalScore
    from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage
    from inspect_ai.scorer import Score

SCORER = "kernel_refinery"
_STOPS = {"stop": "stop", "length": "max_tokens", "content_filter": "content_filter"}


def write_inspect_logs(runs: Sequence[Path], output: Path) -> list[Path]:
    """Write `output/RUN.eval` for each run and return the paths. Raises `UsageError`."""
    from inspect_ai.log import write_eval_log

    paths = []
    for run in recorded_runs(runs):
        path = output / f"{run.name}.eval"
        with disk_errors_told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_eval_log(eval_log(run), str(path), format="eval")
        paths.append(path)
    return paths


def eval_log(run: RecordedRun) -> EvalLog:
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalLog,
        EvalPlan,
        EvalPlanStep,
        EvalResults,
        EvalSpec,
        EvalStats,
    )
    from inspect_ai.model import GenerateConfig

    facts, suite = facts_of(run.table), run.turns[0].record.suite
    samples = [_sample(run, *key, turns) for key, turns in run.samples.items()]
    problems = list(dict.fromkeys(problem for problem, _ in run.samples))
    began = min(turn.began for turn in run.turns)
    settings = _settings(facts)
    sampling = GenerateConfig(temperature=facts.temperature)
    return EvalLog(
        status="success",
        eval=EvalSpec(
            eval_id=run.id,
            run_id=run.id,
            created=began.isoformat(),
            task=f"kernel-refinery/{suite}",
            task_id=digest(suite, *problems),
            task_args=settings,
            dataset=EvalDataset(name=suite, samples=len(problems), sample_ids=problems),
            model=facts.model,
            model_generate_config=sampling,
            config=EvalConfig(epochs=max(sample.epoch for sample in samples)),
            packages=facts.versions,
            metadata={"run": run.name, "commit": facts.commit, "unbegun": list(facts.unbegun)},
        ),
        plan=EvalPlan(
            steps=[EvalPlanStep(solver=facts.strategy, params=settings)], config=sampling
        ),
        results=EvalResults(
            total_samples=len(samples), completed_samples=len(samples), scores=_means(samples)
        ),
        stats=EvalStats(
            started_at=began.isoformat(),
            completed_at=max(turn.ended for turn in run.turns).isoformat(),
            model_usage={facts.model: _usage(run.turns)},
        ),
        samples=samples,
    )


def _settings(facts: RunFacts) -> dict[str, Any]:
    names = (
        *("strategy", "feedback", "budget", "limits", "backend", "device"),
        *("precision", "protocol", "size_class"),
    )
    return {name: getattr(facts, name) for name in names}


def _sample(
    run: RecordedRun, problem: str, sample: int, turns: Sequence[RecordedTurn]
) -> EvalSample:
    from inspect_ai.log import EvalSample

    outcome, messages, events = outcome_of(turns), [], []
    began, ended = min(turn.began for turn in turns), max(turn.ended for turn in turns)
    for turn in turns:
        messages += [_question(turn), _output(turn).message]
        events += _events(turn, (turn.began - began).total_seconds())
    record = outcome.record
    return EvalSample(
        id=problem,
        epoch=sample + 1,
        uuid=digest(run.id, problem, sample),
        input=[messages[0]],
        target="",
        messages=messages,
        output=_output(outcome),
        scores=_scores(outcome),
        metadata={
            **{name: outcome.row[name] for name in ("level", "category", "problem_hash")},
            "turn": record.turn,
            "kernel": record.candidate,
            "struck": outcome.is_struck,
        },
        events=events,
        model_usage={record.model: _usage(turns)},
        started_at=began.isoformat(),
        completed_at=ended.isoformat(),
        total_time=(ended - began).total_seconds(),
        working_time=sum(turn.row["seconds_wall"] for turn in turns),
        turn_count=len(turns),
    )


def _question(turn: RecordedTurn) -> ChatMessage:
    from inspect_ai.model import ChatMessageUser

    prompt = turn.prompt()
    key = digest("question", turn.record.prompt)
    return ChatMessageUser(id=key, content="(prompt not kept)" if prompt is None else prompt)


def _output(turn: RecordedTurn) -> ModelOutput:
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        Content,
        ContentReasoning,
        ContentText,
        ModelOutput,
    )

    answer, record = turn.answer(), turn.record
    text = answer.completion.text if answer else "(answer not kept)"
    content: list[Content] = [ContentText(text=text)]
    if answer and answer.completion.reasoning:
        content.insert(0, ContentReasoning(reasoning=answer.completion.reasoning))
    message = ChatMessageAssistant(
        id=digest("answer", record.problem, record.sample, record.turn),
        content=content if len(content) > 1 else text,
        model=record.model_answered,
        source="generate",
    )
    stop: Any = _STOPS.get(record.finish_reason, "unknown")
    return ModelOutput(
        model=record.model_answered,
        choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
        usage=_model_usage(record.usage),
        time=record.seconds.model,
    )


def _events(turn: RecordedTurn, began_s: float) -> list[Event]:
    """The call and the verdict; `began_s` is counted from the start of the sample."""
    from datetime import timedelta

    from inspect_ai.event import ModelEvent, ScoreEvent
    from inspect_ai.model import GenerateConfig

    model_s = turn.record.seconds.model
    key = (turn.record.problem, turn.record.sample, turn.record.turn)
    return [
        ModelEvent(
            uuid=digest("model", *key),
            timestamp=turn.began,
            working_start=began_s,
            model=turn.record.model,
            input=[_question(turn)],
            tools=[],
            tool_choice="none",
            config=GenerateConfig(temperature=turn.record.temperature),
            output=_output(turn),
            retries=turn.record.attempts - 1,
            completed=turn.began + timedelta(seconds=model_s),
            working_time=model_s,
        ),
        *(
            ScoreEvent(
                uuid=digest("score", name, *key),
                timestamp=turn.ended,
                working_start=began_s + turn.row["seconds_wall"],
                score=score,
                intermediate=True,
                scorer=name,
            )
            for name, score in _scores(turn).items()
        ),
    ]


def _scores(turn: RecordedTurn) -> dict[str, Score]:
    """`correct` is 1 or 0, `speedup_low` the reward of `RecordedTurn`."""
    from inspect_ai.scorer import Score

    verdict = turn.evaluation
    timing = verdict.timing
    extra = {
        "status": verdict.status,
        "reason": verdict.reason,
        "verdict": timing.verdict if timing else "",
        "speedup": timing.speedup if timing else None,
        "speedup_high": timing.speedup_high if timing else None,
        "findings": list(verdict.findings),
    }
    correct = verdict.status is Status.CORRECT and not verdict.findings
    values = {"correct": float(correct), "speedup_low": turn.reward}
    return {
        name: Score(
            value=value, answer=turn.record.candidate, explanation=verdict.message, metadata=extra
        )
        for name, value in values.items()
    }


def _means(samples: Sequence[EvalSample]) -> list[EvalScore]:
    """Over all samples: the share of correct ones, and the geometric mean of the lower ends, of
    which one below 1 counts 1 (eager is kept)."""
    from inspect_ai.log import EvalMetric, EvalScore

    def values(name: str) -> list[float]:
        return [sample.scores[name].as_float() for sample in samples if sample.scores]

    logs = [math.log(max(low, 1.0)) for low in values("speedup_low")]
    figures = {
        "correct": ("mean", sum(values("correct")) / len(samples)),
        "speedup_low": ("geometric_mean_at_least_1", math.exp(sum(logs) / len(logs))),
    }
    return [
        EvalScore(
            name=score,
            scorer=SCORER,
            scored_samples=len(samples),
            metrics={metric: EvalMetric(name=metric, value=value)},
        )
        for score, (metric, value) in figures.items()
    ]


def _usage(turns: Sequence[RecordedTurn]) -> ModelUsage:
    return _model_usage(sum((turn.record.usage for turn in turns), Usage(cost_usd=0.0)))


def _model_usage(usage: Usage) -> ModelUsage:
    from inspect_ai.model import ModelUsage

    # Its counts can't be unknown.
    prompt, cached = usage.prompt_tokens or 0, usage.cached_tokens or 0
    answer = usage.completion_tokens or 0
    return ModelUsage(
        input_tokens=prompt - cached,
        input_tokens_cache_read=cached,
        output_tokens=answer,
        reasoning_tokens=usage.reasoning_tokens,
        total_tokens=prompt + answer,
        total_cost=usage.cost_usd,
    )
