"""A few trials tell what a choice is worth."""

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tuner.planning.effects import fit
from agent.tuner.planning.schedule import Schedule, space

ROWS = space("cuda", "rows")
BASE = ROWS.default()


def test_without_trials_nothing_is_known() -> None:
    assert fit([]).gain(BASE, BASE.replace("vec", "4")) == 0.0


def test_one_difference_explains_the_gain_and_is_held_back() -> None:
    effects = fit([(BASE, 1.0), (BASE.replace("vec", "4"), 2.0)])
    gain = effects.gain(BASE, BASE.replace("vec", "4"))
    assert 0.0 < gain < log(2.0)
    assert effects.gain(BASE, BASE.replace("threads", "64")) == 0.0


@given(st.lists(st.sampled_from(["1", "2", "4", "8"]), min_size=4, max_size=12), st.data())
def test_the_way_back_is_the_opposite(vectors: list[str], data: st.DataObject) -> None:
    speedups = [data.draw(st.floats(0.1, 10.0)) for _ in vectors]
    effects = fit([(BASE.replace("vec", v), s) for v, s in zip(vectors, speedups, strict=True)])
    a, b = BASE.replace("vec", vectors[0]), BASE.replace("vec", vectors[-1])
    assert effects.gain(a, b) == pytest.approx(-effects.gain(b, a))


def test_two_knobs_are_told_apart() -> None:
    def speedup(schedule: Schedule) -> float:
        return exp((schedule["vec"] == "4") * 1.0 - (schedule["maths"] == "fast") * 0.5)

    grid = [BASE.replace("vec", v).replace("maths", m) for v in "14" for m in ("libm", "fast")]
    effects = fit([(s, speedup(s)) for s in grid * 4])
    assert effects.gain(BASE, BASE.replace("vec", "4")) == pytest.approx(1.0, rel=0.2)
    assert effects.gain(BASE, BASE.replace("maths", "fast")) == pytest.approx(-0.5, rel=0.2)
