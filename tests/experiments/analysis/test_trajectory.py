"""One recorded trajectory: figures of its profiles and what became of the advice."""

from pathlib import Path

import pytest

from experiments.analysis.trajectory import Trajectory
from problems.errors import UsageError

RUN = Path("experiments/recordings/relay-by-hand-h100.tar.xz")
PROBLEM = "level2_85_Conv2d_GroupNorm_Scale_MaxPool_Clamp"


@pytest.fixture(scope="module")
def trajectory() -> Trajectory:
    return Trajectory.read(RUN, PROBLEM)


def test_turns_are_in_order_and_the_rival_is_known(trajectory: Trajectory):
    assert [record.turn for record in trajectory.records] == [0, 1, 2]
    assert trajectory.rival.compile_us == pytest.approx(2060, rel=0.01)


def test_a_turn_is_told_with_what_was_found_before_it(trajectory: Trajectory):
    told = trajectory.turns()
    assert list(told["speedup"]) == [
        "1.70x [1.69, 1.71]",
        "4.79x [4.78, 4.81]",
        "5.16x [5.14, 5.17]",
    ]
    headlines = [record.profile.headline for record in trajectory.records if record.profile]
    assert list(told["found before"]) == ["", *headlines[:2]]
    assert list(told["what changed"]) == [record.plan for record in trajectory.records]


def test_figures_have_a_row_each_and_a_column_a_turn(trajectory: Trajectory):
    table = trajectory.figures("launches", "no_such_figure")
    assert list(table.columns) == ["turn 0", "turn 1", "turn 2"]
    assert list(table.loc["kernels a call"]) == ["4", "2", "2"]
    assert list(table.loc["no such figure"]) == ["", "", ""]


def test_advice_is_told_with_the_turn_that_followed_it(trajectory: Trajectory):
    told = trajectory.advice()
    assert list(told["turn"]) == [1, 1, 2]
    first = told.iloc[0]
    assert (first["rule"], first["before"], first["after"]) == ("library_time", "0.75", "0.00")
    assert (first["moved"], first["time"]) == ("yes", "-65 %")


def test_a_problem_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="has no turn of nothing"):
        Trajectory.read(RUN, "nothing")
