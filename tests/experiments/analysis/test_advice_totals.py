from pathlib import Path

import pytest

from agent.record.turn import TurnRecord
from experiments.analysis.advice_totals import RuleTotal, total_advice
from tests.agent.made_records import profile, write_turns
from tests.experiments.made_runs import made_turn
from tools.profiling.profile_report import Advice, AdviceScore, Direction

PIECE = {"evidence": "It.", "change": "Do.", "direction": Direction.UP, "before": 1.0, "gain": 0.3}


def advised(rule: str, problem: str, call: int, *scores: AdviceScore) -> TurnRecord:
    piece = Advice.model_validate({"rule": rule, "figure": "dram_pct", **PIECE})
    told = profile().model_copy(update={"advice": (piece,)}).model_dump()
    return made_turn(problem, call, 1.5, profile=told, advice_scores=scores)


def scored(
    rule: str, moved: bool | None, time_us: float | None = 80.0, gain: float = 0.3
) -> AdviceScore:
    return AdviceScore(
        rule=rule,
        figure="dram_pct",
        direction=Direction.UP,
        before=40.0,
        after=None if moved is None else 78.0,
        moved=moved,
        latency_before_us=100.0,
        latency_after_us=time_us,
        predicted_gain=gain,
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    turns = [
        advised("scalar_access", "level1_1_a", 0),
        advised("scalar_access", "level1_1_a", 1, scored("scalar_access", True, 60.0)),
        advised("tail_wave", "level1_1_a", 2, scored("scalar_access", True, 80.0, 0.5)),
        advised("tail_wave", "level1_1_a", 3, scored("tail_wave", False, 110.0)),
        made_turn("level1_1_a", 4, "wrong"),
        advised("scalar_access", "level1_2_b", 0, scored("scalar_access", None, None)),
    ]
    return write_turns(tmp_path / "run", turns)


def rule(run: Path, name: str) -> RuleTotal:
    return next(total for total in total_advice([run]) if total.rule == name)


def test_rules_are_summed_up(run: Path) -> None:
    total = rule(run, "scalar_access")
    assert (total.given, total.followed, total.known, total.moved) == (3, 3, 2, 2)
    assert total.hit_rate is not None
    assert total.hit_rate.value == 1.0
    # Wilson: two of two is far from certain.
    assert total.hit_rate.low == pytest.approx(0.342, abs=0.001)
    assert total.time_change == pytest.approx(-0.3)
    assert total.predicted_gain == pytest.approx((0.3 + 0.5 + 0.3) / 3)
    failed = rule(run, "tail_wave")
    assert failed.hit_rate is not None
    assert failed.hit_rate.value == 0.0
    assert failed.time_change == pytest.approx(0.1)
    assert failed.time_change_moved is None


def test_the_rule_given_most_often_comes_first(run: Path) -> None:
    assert [total.rule for total in total_advice([run])] == ["scalar_access", "tail_wave"]


def test_runs_add_up(run: Path, tmp_path: Path):
    other = write_turns(tmp_path / "other", [advised("tail_wave", "level1_1_a", 0)])
    assert rule(run, "tail_wave").given == 2
    [given] = [each.given for each in total_advice([run, other]) if each.rule == "tail_wave"]
    assert given == 3
