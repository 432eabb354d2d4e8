from __future__ import annotations

from evaluator.evaluation import Backend, Evaluation, Seconds, Status
from experiments.bench.speed.latency import (
    LatencyRow,
    TimedVerdict,
    markdown,
    timed_verdict,
)


def row(name: str, cold_s: float) -> LatencyRow:
    def run(seconds: float) -> TimedVerdict:
        return TimedVerdict(
            seconds=seconds,
            until_verdict_s=seconds / 4,
            until_interval_s=seconds / 2,
            build_s=seconds / 8,
            status=Status.CORRECT,
            reason="",
            headers="light",
            cached=False,
        )

    return LatencyRow(
        name=name,
        backend=Backend.CPP,
        problem="level1_1_swish",
        expected=Status.CORRECT,
        cold=run(cold_s),
        warm=run(1.0),
        load_average=1.0,
    )


def test_verdicts_agree_only_if_all_are_the_expected_one():
    good = row("cpp/a", 4.0)
    assert good.agrees
    wrong = good.warm.model_copy(update={"status": Status.INCORRECT})
    assert not good.model_copy(update={"warm": wrong}).agrees
    assert not good.model_copy(update={"expected": Status.INCORRECT}).agrees


def test_the_table_has_medians_and_says_which_verdict_differs():
    other = row("cpp/c", 12.0).model_copy(update={"expected": Status.INCORRECT})
    table = markdown([], [row("cpp/a", 4.0), row("cpp/b", 8.0), other])
    assert "| cpp/a | correct | 0.5 | 1.0 | 2.0 | 4.0 | 1.0 | light | 1.0 |" in table
    assert "| cpp/c | correct (not incorrect, or correct when warm) |" in table
    assert "medians: 4.0 s until the first interval or the refusal, 8.0 s cold, 1.0 s" in table
    assert "2 verdicts as expected" in table


def test_what_came_after_the_verdict_does_not_count_until_it():
    evaluation = Evaluation(
        status=Status.INCORRECT,
        reason="wrong_values",
        correctness={
            "calls_judged": 1,
            "calls_made": 1,
            "mismatch": {"output": 0, "kind": "shape"},
        },
        seconds=Seconds(build=1.0, judge=6.0, timing=4.0, narrowing=3.0, audit=2.0),
    )
    run = timed_verdict(evaluation, 10.0)
    assert run.until_verdict_s == run.until_answer_s == 4.0
    assert run.until_interval_s is None
    assert run.headers == "none"
