import sys

import numpy as np
import pandas as pd
import pytest

from experiments.analysis.mixed_model import fit_mixed_model
from problems.errors import UsageError


def made(problems: int, gain: float, *, noise: float = 0.1, seed: int = 0) -> pd.DataFrame:
    """Condition B is exp(gain) times as fast as A in category x, and A's equal in y."""
    generator = np.random.default_rng(seed)
    rows = []
    for place in range(problems):
        category = "xy"[place % 2]
        hardness = generator.normal(0.5, 0.3)
        for condition in ("A", "B"):
            effect = gain if (condition, category) == ("B", "x") else 0.0
            value = hardness + effect + generator.normal(0, noise)
            rows.append((condition, f"p{place}", category, value))
    return pd.DataFrame(rows, columns=["condition", "problem", "category", "log_speedup"])


def test_a_known_effect_is_found_where_it_is():
    pytest.importorskip("statsmodels")
    found = fit_mixed_model("m", made(60, 0.4))
    assert (found.observations, found.problems, found.base, found.note) == (120, 60, "A", "")
    terms = {term.name: term for term in found.terms}
    assert set(terms) == {"A, mean over categories", "B", "x", "B in x"}
    # The mean over categories is half of the gain, and category x is half of it above.
    for name in ("B", "B in x"):
        assert terms[name].ratio.value == pytest.approx(np.exp(0.2), rel=0.05)
        assert terms[name].chance <= terms[name].holm < 0.001
    assert found.problem_sd == pytest.approx(0.3, rel=0.3)
    assert found.residual_sd == pytest.approx(0.1, rel=0.3)


def test_intervals_of_the_condition_cover_about_95_percent():
    """Three standard deviations of the binomial are 8.4 points at 60 fits."""
    pytest.importorskip("statsmodels")
    held = 0
    for seed in range(60):
        found = fit_mixed_model("m", made(24, 0.2, seed=seed))
        [ratio] = [term.ratio for term in found.terms if term.name == "B"]
        assert ratio.low is not None and ratio.high is not None
        held += ratio.low <= np.exp(0.1) <= ratio.high
    assert held / 60 >= 0.95 - 0.084


def test_rare_categories_are_put_together_and_one_category_is_no_factor():
    pytest.importorskip("statsmodels")
    table = made(20, 0.2)
    rare = table.assign(
        category=table["category"]
        .mask(table["problem"] == "p0", "z")
        .mask(table["problem"] == "p1", "w")
    )
    assert "other" in {term.name for term in fit_mixed_model("m", rare).terms}
    alone = fit_mixed_model("m", table.assign(category="x"))
    assert [term.name for term in alone.terms] == ["A", "B"]
    assert alone.formula == "log speedup ~ condition + (1 | problem)"


def test_what_cannot_be_believed_says_so():
    pytest.importorskip("statsmodels")
    same = fit_mixed_model("m", made(8, 0.0).assign(log_speedup=0.0))
    assert (same.note, same.terms) == ("all values are equal: nothing to explain", ())
    # Two values of a problem that add up to nothing: problems vary less than chance has it.
    table = made(8, 0.0)
    table["log_speedup"] = np.where(table["condition"] == "A", 1, -1) * np.arange(16)
    failed = fit_mixed_model("m", table)
    assert failed.note.startswith("it did not converge, so it says nothing (")
    assert (failed.terms, failed.problem_sd) == ((), None)
    one = table[table["problem"] == "p0"]
    assert fit_mixed_model("m", one).note.startswith("it did not converge")


def test_without_the_package_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "statsmodels.formula.api", None)
    with pytest.raises(UsageError, match=r"pip install 'kernel-refinery\[analysis\]'"):
        fit_mixed_model("m", made(4, 0.0))
