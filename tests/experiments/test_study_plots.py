from pathlib import Path

import pytest

from experiments import study_plots
from experiments.study.study_report import study_report
from problems.errors import UsageError
from tests.experiments.test_plots import texts

STUDY = Path("experiments/recordings/profile-worth-cpu")


def test_conditions_stand_above_and_contrasts_below():
    report = study_report(STUDY)
    figure = study_plots.at_equal_budgets(report, ("calls", "cost_usd"))
    above, below = figure.axes
    for axes, names in (
        (above, {"refine G+E", "refine G+E+placebo:P", "refine G+E+P"}),
        (below, {f"refine G+E+P over refine {other}" for other in ("G+E", "G+E+placebo:P")}),
    ):
        lines = {line.get_label(): line for line in axes.lines if line.get_label()[0] != "_"}
        assert set(lines) == names <= texts(figure)
        for name, line in lines.items():
            condition, _, over = name.partition(" over ")
            curve = next(
                each
                for each in report.curves
                if (each.condition, each.over) == (condition, over)
                and (each.currency, each.figure) == ("calls", "speedup_kept")
            )
            assert list(line.get_ydata()) == [point.value for point in curve.points]
    assert "n = 23 problems, 1 seed." in figure.get_supxlabel()


def test_only_the_conditions_that_are_named_are_drawn():
    report = study_report(STUDY)
    named = ("refine G+E", "refine G+E+P")
    figure = study_plots.at_equal_budgets(report, ("calls",), named)
    drawn = {line.get_label() for axes in figure.axes for line in axes.lines}
    assert {name for name in drawn if name[0] != "_"} == {*named, " over ".join(named[::-1])}
    assert "Bands: 95 %" in figure.get_supxlabel()
    with pytest.raises(UsageError, match="no condition 'refine'; there are refine G"):
        study_plots.at_equal_budgets(report, conditions=["refine"])


def test_a_budget_of_which_nothing_was_spent_is_refused():
    with pytest.raises(UsageError, match="spent no dollars"):
        study_plots.at_equal_budgets(study_report(STUDY), ("cost_usd",))


def test_each_rule_that_was_followed_has_a_row():
    figure = study_plots.advice_outcomes([Path("experiments/recordings/relay-by-hand-h100")])
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["fp32_matrix (4)", "library_time (4)", "uncoalesced_loads (1)"]
    said = " ".join(figure.get_supxlabel().split())
    assert "n = 9 pieces of advice" in said
    assert "answered through files, by a person or another program" in said
