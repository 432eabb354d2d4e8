import pytest

from agent.record import figures
from tests.agent.made_records import correct, incorrect, timing, turn


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (34, "0:34"), (725, "12:05"), (3727, "1:02:07")],
)
def test_durations(seconds: float, text: str) -> None:
    assert figures.duration(seconds) == text


@pytest.mark.parametrize(
    ("usd", "text"),
    [(None, "unknown"), (0.0, "free"), (0.0000123, "$1e-05"), (0.0123, "$0.012"), (12.5, "$12.50")],
)
def test_an_unknown_cost_is_not_free(usd: float | None, text: str) -> None:
    assert figures.cost(usd) == text


@pytest.mark.parametrize(
    ("microseconds", "text"), [(8.123, "8.12 us"), (812.3, "812 us"), (1604.0, "1.60 ms")]
)
def test_latencies(microseconds: float, text: str) -> None:
    assert figures.latency(microseconds) == text


def test_a_speedup_never_comes_without_its_interval() -> None:
    assert figures.speedup(timing(2.0)) == "2.00x [1.98, 2.02]"
    assert figures.speedup(timing(20.0)) == "20.0x [19.8, 20.2]"
    assert figures.ratio(680088.0) == "7e+05"


def test_an_outcome_is_half_a_line() -> None:
    assert figures.outcome(correct(2.0)) == "2.00x [1.98, 2.02] over eager, faster"
    assert figures.outcome(correct(0.5)) == "0.50x [0.49, 0.51] over eager, slower"
    assert figures.outcome(incorrect()) == "wrong_values: 3 of 8 elements differ"
    assert figures.outcome(correct().model_copy(update={"timing": None})) == "correct, not timed"


def test_a_turn_has_a_place_in_its_run() -> None:
    assert figures.place(turn(3)) == "turn 3"
    assert figures.place(turn(0, sample=3, strategy="sample")) == "sample 3"
    assert figures.place(turn(0, sample=3, strategy="hybrid")) == "draft 3"
    assert figures.place(turn(2, sample=3, strategy="hybrid")) == "draft 3.2"
