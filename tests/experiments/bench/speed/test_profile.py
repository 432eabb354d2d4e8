from __future__ import annotations

import pytest

from experiments.bench.speed.profile import (
    ProfiledTurn,
    ProfileFigures,
    figures_of,
    measure_profile,
    told,
)
from experiments.bench.suites.machine import Machine
from problems.errors import UsageError


def turn(name: str, profile_s: float, **stages: float) -> ProfiledTurn:
    return ProfiledTurn(
        name=name,
        problem="level1_1_swish",
        judging_s=2.0,
        profile_s=profile_s,
        stages=stages,
        rung="ncu",
        rung_reason="",
    )


def test_the_first_turn_stands_apart() -> None:
    here = Machine(
        devices=("a GPU",), cores=1, load_average=0.0, commit=None, versions={"torch": "2"}
    )
    turns = [
        turn("cuda/first", 9.0, start=3.0),
        turn("cuda/second", 4.0, start=0.25),
        turn("cuda/third", 5.0),
        turn("cuda/fourth", 4.5),
    ]
    figures = figures_of(here, "cuda:0", 1.0, turns)
    assert (figures.first_s, figures.later_median_s, figures.later_most_s) == (9.0, 4.5, 5.0)
    assert ProfileFigures.model_validate_json(figures.model_dump_json()) == figures
    lines = told(figures)
    assert lines[1].split()[-1] == "start"
    assert lines[3].split() == ["cuda/second", "ncu", "4.00", "0.25"]
    assert "9.0 s to the first turn, to the 3 later ones 4.5 s" in lines[-1]


@pytest.mark.parametrize("candidates", [0, 1, 1000])
def test_candidates_that_are_not_there_are_a_mistake(candidates: int) -> None:
    with pytest.raises(UsageError, match="--candidates must be 2 to"):
        measure_profile("cpu", candidates=candidates)


@pytest.mark.slow
def test_a_small_measurement_on_the_cpu() -> None:
    figures = measure_profile("cpu", candidates=2, timing_seconds=0.1)
    assert [turn.rung for turn in figures.turns] == ["cpu", "cpu"]
    for each in figures.turns:
        assert sum(each.stages.values()) < each.profile_s
