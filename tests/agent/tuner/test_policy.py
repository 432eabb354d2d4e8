"""Feedback is used as far as it is there, and no further."""

from collections.abc import Callable
from math import exp, log

import pytest

from agent.tuner import answer
from agent.tuner.planning.policy import MOVES, gain
from agent.tuner.planning.prompt import Trial, fenced
from agent.tuner.planning.schedule import Schedule, space
from tests.agent.tuner.prompts import SOFTMAX, Turn, prompt
from tools.profiling.profile_report import Bottleneck

ROWS = space("cpp", "rows")
BASE = ROWS.default()


def next_schedule(*args, seed: int | None = 0, temperature: float | None = None, **kw) -> Schedule:
    text = answer(prompt(SOFTMAX, *args, **kw), temperature, seed)
    schedule = Schedule.parse(fenced(text))
    assert schedule is not None
    return schedule


def changed(old: Schedule, new: Schedule) -> dict[str, str]:
    return {k: v for k, v in new.choices.items() if old[k] != v}


def test_the_same_request_gives_the_same_answer() -> None:
    turns = [Turn(BASE, "correct", 1.2)]
    for letters in ("", "G", "GE"):
        asked = prompt(SOFTMAX, turns, letters)
        assert answer(asked, None, 3) == answer(asked, None, 3)


def test_without_feedback_it_draws_by_seed_and_at_temperature_0_it_does_not() -> None:
    drawn = {next_schedule(seed=s).plan() for s in range(12)}
    assert len(drawn) > 8
    assert {next_schedule(seed=s, temperature=0.0).plan() for s in range(4)} == {BASE.plan()}


def test_none_cannot_know() -> None:
    """Without letters the prompt, hence the answer, is that of the first turn."""
    failed = [Turn(BASE.replace("vec", "32"), "build_error")]
    assert next_schedule(failed, "") == next_schedule()


def test_g_alone_changes_one_thing_blindly() -> None:
    new = next_schedule([Turn(BASE, "build_error")], "G")
    assert len(changed(BASE, new)) == 1
    moves = {tuple(changed(BASE, next_schedule([Turn(BASE)], "G", seed=s))) for s in range(12)}
    assert len(moves) > 3


@pytest.mark.parametrize(
    ("knob", "choice", "status"),
    [
        ("vec", "32", "build_error"),
        ("acc", "fp32", "incorrect"),
        ("stage", "stack", "runtime_error"),
    ],
)
def test_e_backs_out_of_what_failed(knob: str, choice: str, status: str) -> None:
    broken = BASE.replace("chunk", "16").replace(knob, choice)
    new = next_schedule([Turn(broken, status)], "GE")
    assert new[knob] == BASE[knob]
    assert new["chunk"] == "16", "what is not to blame stays"


def test_e_does_not_try_again_what_broke_a_good_kernel() -> None:
    turns = [Turn(BASE, "correct", 1.1), Turn(BASE.replace("acc", "fp32"), "incorrect")]
    for seed in range(10):
        assert next_schedule(turns, "GE", base=0, seed=seed)["acc"] != "fp32"


def climb(rate: Callable[[Schedule], tuple[str, float | None]], seed: int, turns: int = 10) -> list:
    """A run against a stand-in judge."""
    seen: list[Turn] = []
    for _ in range(turns):
        good = [i for i, t in enumerate(seen) if t.speedup]
        best = max(good, key=lambda i: seen[i].speedup) if good else len(seen) - 1
        schedule = next_schedule(seen, "GE", base=best, seed=seed)
        seen.append(Turn(schedule, *rate(schedule)))
    return seen


def stand_in(schedule: Schedule) -> tuple[str, float | None]:
    if schedule["vec"] == "32":
        return "build_error", None
    if schedule["acc"] == "fp32":
        return "incorrect", None
    speed = {"4": 1.0, "8": 1.4, "16": 1.7}[schedule["vec"]]
    speed *= {"one": 0.6, "all": 1.0}[schedule["threads"]]
    return "correct", round(speed * {"libm": 0.3, "poly": 1.0}[schedule["maths"]], 2)


def test_e_climbs_and_never_repeats() -> None:
    gains = []
    for seed in range(8):
        run = climb(stand_in, seed)
        assert len({t.schedule.plan() for t in run}) == len(run)
        best = max(t.speedup or 0.0 for t in run)
        gains.append(best / 1.7)
        assert run[-1].speedup or any(t.speedup for t in run)
    assert sum(gains) / len(gains) > 0.8


@pytest.mark.parametrize(
    ("backend", "bottleneck", "move"),
    [
        ("cpp", "single_thread", {"threads": "all"}),
        ("cpp", "not_vectorised", {"vec": "16"}),
        ("cpp", "compute", {"maths": "poly"}),
        ("cpp", "redundant_traffic", {"stage": "stack"}),
        ("cuda", "memory_bandwidth", {"vec": "4"}),
        ("cuda", "redundant_traffic", {"stage": "regs"}),
        ("cuda", "too_few_blocks", {"threads": "128"}),
        ("cuda", "latency", {"vec": "4"}),
    ],
)
def test_p_picks_the_move(backend: str, bottleneck: str, move: dict[str, str]) -> None:
    base = space(backend, "rows").default()
    new = next_schedule([Turn(base, "correct", 1.1)], "GEP", bottleneck=bottleneck, backend=backend)
    assert changed(base, new) == move


def test_p_goes_on_to_the_next_move_when_the_first_was_tried() -> None:
    faster = BASE.replace("threads", "all")
    turns = [Turn(BASE, "correct", 1.1), Turn(faster, "correct", 0.9)]
    new = next_schedule(turns, "GEP", base=0, bottleneck="memory_bandwidth")
    assert changed(BASE, new) == {"vec": "16"}


def test_p_does_not_insist_on_what_was_slower_elsewhere() -> None:
    """`threads=all` lost from another base: it isn't tried from this one."""
    other = BASE.replace("chunk", "16")
    turns = [
        Turn(other, "correct", 1.0),
        Turn(other.replace("threads", "all"), "correct", 0.5),
        Turn(BASE, "correct", 1.2),
    ]
    new = next_schedule(turns, "GEP", base=2, bottleneck="memory_bandwidth")
    assert new["threads"] == "one"


def test_one_difference_explains_the_gain_and_is_held_back() -> None:
    faster = BASE.replace("vec", "8")
    trials = [Trial(BASE, "correct", 1.0), Trial(faster, "correct", 2.0)]
    assert 0.0 < gain(trials, BASE, faster) < log(2.0)
    assert gain(trials, faster, BASE) == pytest.approx(-gain(trials, BASE, faster))
    assert gain(trials, BASE, BASE.replace("chunk", "64")) == 0.0
    assert gain([], BASE, faster) == 0.0
    assert gain([Trial(BASE, "correct", 1.0), Trial(faster, "incorrect", 9.0)], BASE, faster) < 0.0


def test_what_two_knobs_are_worth_is_kept_apart() -> None:
    def speedup(schedule: Schedule) -> float:
        return exp((schedule["vec"] == "8") * 1.0 - (schedule["maths"] == "poly") * 0.5)

    grid = [BASE.replace("vec", v).replace("maths", m) for v in "48" for m in ("libm", "poly")]
    trials = [Trial(s, "correct", speedup(s)) for s in grid * 4]
    assert gain(trials, BASE, BASE.replace("vec", "8")) == pytest.approx(1.0, rel=0.2)
    assert gain(trials, BASE, BASE.replace("maths", "poly")) == pytest.approx(-0.5, rel=0.2)


@pytest.mark.parametrize("backend", list(MOVES))
def test_the_tables_name_things_that_exist(backend: str) -> None:
    knobs = {k.name: k for f in ("map", "rows") for k in space(backend, f).knobs}
    for bottleneck, moves in MOVES[backend].items():
        assert Bottleneck(bottleneck)
        for move in moves:
            for knob, choice in (pair.split("=") for pair in move.split()):
                assert choice in knobs[knob].choices, (bottleneck, knob, choice)
