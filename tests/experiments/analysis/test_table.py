import math

import pytest

from experiments.analysis.measures import Unit
from experiments.analysis.statistics import Estimate, Interval, interval_of
from experiments.analysis.table import Table, figure, gap, interval


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.667, "share", "67 %"),
        (1.966, "ratio", "1.97x"),
        (96.17, "ratio", "96.2x"),
        (12345.4, "tokens", "12,345"),
        (0.0123, "usd", "$0.012"),
        (0.0, "usd", "$0"),
        (34.06, "seconds", "34.1 s"),
        (3406.0, "seconds", "3,406 s"),
        (None, "usd", "unknown"),
        (math.nan, "usd", "unknown"),
    ],
)
def test_figures_are_written_as_people_read_them(value: float | None, unit: Unit, shown: str):
    assert figure(value, unit) == shown


def test_intervals_and_differences_say_which_way_they_go():
    assert interval(Interval(value=1.966, low=1.901, high=None), "ratio") == "1.97x [1.90, -]"
    assert gap(Interval(value=0.12, low=-0.03, high=0.27), "share") == "+12 pt [-3, +27]"
    assert gap(Interval(value=1.12, low=0.97, high=1.3), "ratio") == "x1.12 [0.97, 1.30]"
    assert gap(Interval(value=-1.5, low=-2.0, high=-1.0), "usd") == "-1.50 $ [-2.00, -1.00]"


def test_columns_are_aligned():
    table = Table(("problem", "best"), [("a", "1.97x"), ("longer_name", "12.0x")])
    assert list(table.plain()) == [
        "problem       best",
        "a            1.97x",
        "longer_name  12.0x",
    ]


def test_a_ratio_of_which_nothing_is_known_has_no_interval() -> None:
    found = interval_of(Estimate(2.4, 0.0, math.inf))
    assert interval(found, "ratio") == "2.40x [-, -]"
