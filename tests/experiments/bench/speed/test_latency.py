from __future__ import annotations

import pytest

from evaluator.evaluation import Backend, Evaluation, Seconds, Status
from experiments.bench.speed.catalogue import catalogue
from experiments.bench.speed.latency import (
    CandidateLatency,
    LatencyFigures,
    OurRun,
    measure_latency,
    our_run,
    told,
)
from experiments.bench.speed.plain_path import PlainRun, plain_run
from problems.errors import UsageError


def row(name: str, plain_s: float, cold_s: float, headers: str = "light") -> CandidateLatency:
    def ours(seconds: float) -> OurRun:
        return OurRun(
            seconds=seconds,
            until_verdict_s=seconds / 4,
            until_interval_s=seconds / 2,
            build_s=seconds / 8,
            status=Status.CORRECT,
            reason="",
            headers=headers,
            cached=False,
        )

    return CandidateLatency(
        name=name,
        backend=Backend.CPP,
        problem="level1_1_swish",
        expected=Status.CORRECT,
        plain=PlainRun(seconds=plain_s, status=Status.CORRECT),
        cold=ours(cold_s),
        warm=ours(1.0),
        cold_ratio=plain_s / cold_s,
        interval_ratio=2 * plain_s / cold_s,
        warm_ratio=plain_s,
        load_average=1.0,
        part=0,
    )


def figures(*rows: CandidateLatency, device: str = "a device") -> LatencyFigures:
    return LatencyFigures(
        device=device, side_by_side=1, timing_seconds=1.0, parts=(), candidates=rows, summary=()
    )


def test_verdicts_agree_only_if_all_are_the_expected_one():
    good = row("cpp/a", 20.0, 4.0)
    assert good.agrees
    wrong = good.plain.model_copy(update={"status": Status.INCORRECT})
    assert not good.model_copy(update={"plain": wrong}).agrees
    assert not good.model_copy(update={"expected": Status.INCORRECT}).agrees


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
    run = our_run(evaluation, 10.0)
    assert run.until_verdict_s == 4.0
    assert run.until_interval_s is None
    assert run.headers == "none"


def test_figures_of_another_device_are_not_gone_on_with():
    with pytest.raises(UsageError, match="another --out"):
        measure_latency(catalogue([Backend.CPP], 1), before=figures(device="another device"))


@pytest.mark.slow
def test_the_plain_path_comes_to_the_expected_verdicts():
    for candidate in catalogue([Backend.CPP]):
        if candidate.expected is not Status.CORRECT:
            assert plain_run(candidate, "cpu").status is candidate.expected


@pytest.mark.slow
def test_a_measurement_is_kept_part_by_part_and_gone_on_with():
    candidates = catalogue([Backend.CPP], 2)
    kept: list[LatencyFigures] = []
    first = measure_latency(candidates[:1], timing_seconds=0.2, keep=kept.append)
    assert [each.name for each in kept[-1].candidates] == [candidates[0].name]
    both = measure_latency(candidates, timing_seconds=0.2, before=first)
    assert [each.name for each in both.candidates] == [each.name for each in candidates]
    assert [each.part for each in both.candidates] == [0, 1]
    assert both.candidates[0] == first.candidates[0]
    assert all(
        each.agrees and not each.cold.cached and each.warm.cached for each in both.candidates
    )
    (summary,) = both.summary
    assert (summary.candidates, summary.built, summary.light, summary.agree) == (2, 2, 2, 2)
    assert len(told(both)) == 2 + 1 + 2 + 1 + 1
