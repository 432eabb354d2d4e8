from pathlib import Path

import pytest

from experiments import plots
from experiments.page.columns import columns_of, curves_of_runs
from experiments.page.sources import Sources
from experiments.runs import load_runs
from experiments.study.curves import Curve
from experiments.study.study_report import study_report
from problems.errors import UsageError
from tests.experiments.made_runs import made_run, random_results

STUDY = Path("experiments/recordings/profile-worth-cpu.tar.xz")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made_run(tmp_path / "refine", random_results(7, 5, gain=1.8, seed=1))
    made_run(tmp_path / "sample", random_results(7, 5, gain=1.0, seed=2), strategy="sample")
    made_run(tmp_path / "hopeless", {"p": [None, None], "q": ["wrong", None]})
    return tmp_path


def texts(figure) -> set[str]:
    from matplotlib.text import Text

    return {text.get_text() for text in figure.findobj(Text) if text.get_visible()}


def test_trajectories_have_a_panel_a_problem_and_a_label_a_best_kernel(folder: Path):
    turns = load_runs(folder / "refine")
    figure = plots.trajectories(turns)
    shown = texts(figure)
    assert set(turns["problem"]) <= shown
    bests = turns.groupby("problem")["speedup"].max()
    assert {f"{best:.2f}x" for best in bests} <= shown
    assert sum(axes.get_visible() for axes in figure.axes) == 7


def curves(*runs: Path) -> list[Curve]:
    return curves_of_runs(columns_of(Sources.at(runs), None))


def test_every_run_is_drawn_however_many_there_are(tmp_path: Path):
    for seed in range(9):
        made_run(tmp_path / f"run{seed}", random_results(7, 5, gain=1.2, seed=seed))
    turns = load_runs(tmp_path)
    for figure in (
        plots.at_equal_budgets(curves(tmp_path), turns, ("tokens",)),
        plots.fast_p_curve(turns),
    ):
        lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 2]
        assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 9
        assert len({text for text in texts(figure) if text.startswith("run")}) == 9


def test_the_curve_of_fast_p_falls_from_the_share_of_the_solved(tmp_path: Path):
    made_run(tmp_path / "run", {"p": [2.0], "q": [0.9], "r": [None], "s": [1.2]})
    [line] = [
        line
        for line in plots.fast_p_curve(load_runs(tmp_path)).axes[0].lines
        if line.get_label() == "refine G+E+P"
    ]
    shares = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
    assert min(shares.values()) == 0
    assert [max(s for p, s in shares.items() if p > above) for above in (0, 0.95, 1.25)] == [
        0.75,
        0.5,
        0.25,
    ]


def test_shares_of_statuses_are_those_of_the_calls(folder: Path):
    figure = plots.statuses_by_call(load_runs(folder / "hopeless"))
    # Of the two problems one does not build and one is wrong; then both do not build.
    heights = [patch.get_height() for patch in figure.axes[0].patches]
    assert sorted(height for height in heights if height) == [0.5, 0.5, 1.0]
    assert {"does not build", "wrong"} < texts(figure)
    assert "cheats" not in texts(figure)


def test_a_bar_and_a_panel_are_of_all_seeds_of_a_condition(folder: Path, tmp_path: Path):
    for seed, first in enumerate((1.5, "wrong")):
        made_run(tmp_path / f"again{seed}", {"p": [first], "q": ["wrong"]}, run_seed=seed)
    seeds = load_runs([tmp_path / "again0", tmp_path / "again1"])
    statuses = plots.statuses_by_call(seeds)
    heights = [patch.get_height() for patch in statuses.axes[0].patches]
    assert [height for height in heights if height] == [0.25, 0.75]
    assert "refine G+E+P" in texts(statuses)
    bars = plots.spending(seeds), plots.spending(seeds[seeds["run"] == "again0"])
    assert len({label.get_text() for each in bars for label in each.axes[1].texts}) == 1
    assert "refine G+E+P" in texts(bars[0])


def test_a_run_without_a_kernel_can_be_drawn_too(folder: Path, tmp_path: Path):
    turns = load_runs(folder / "hopeless")
    for number, draw in enumerate((plots.trajectories, plots.fast_p_curve, plots.spending)):
        draw(turns).savefig(tmp_path / f"{number}.png")
    plots.at_equal_budgets(curves(folder / "hopeless"), turns).savefig(tmp_path / "budgets.png")


def test_conditions_stand_above_and_contrasts_below():
    report = study_report(STUDY)
    figure = plots.at_equal_budgets(report.curves, load_runs(STUDY), ("calls", "cost_usd"))
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
    figure = plots.at_equal_budgets(report.curves, load_runs(STUDY), ("calls",), named)
    drawn = {line.get_label() for axes in figure.axes for line in axes.lines}
    assert {name for name in drawn if name[0] != "_"} == {*named, " over ".join(named[::-1])}
    assert "Bands: 95 %" in figure.get_supxlabel()
    with pytest.raises(UsageError, match="no condition 'refine'; there are refine G"):
        plots.at_equal_budgets(report.curves, load_runs(STUDY), only=["refine"])


def test_a_budget_of_which_nothing_was_spent_is_refused():
    with pytest.raises(UsageError, match="no curves over dollars"):
        plots.at_equal_budgets(study_report(STUDY).curves, load_runs(STUDY), ("cost_usd",))


def test_under_a_condition_seeds_are_averaged_and_eager_is_kept(tmp_path: Path):
    made_run(tmp_path / "a", {"slow": [0.7], "fast": [4.0]}, run_seed=0)
    made_run(tmp_path / "b", {"slow": [0.9], "fast": [None]}, run_seed=1)
    made_run(tmp_path / "c", {"slow": [1.5], "fast": [3.0]}, strategy="sample")
    figure = plots.best_by_condition(load_runs(tmp_path))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fast", "slow"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["refine G+E+P", "sample"]
    figures = {text.get_text(): text.get_weight() for text in axes.texts}
    assert figures == {"2.00": "normal", "3.00": "bold", "1.00": "normal", "1.50": "bold"}
    assert "2 seeds" in figure.get_supxlabel()


@pytest.mark.parametrize("seeds", [(0, 0), (0, 1)])
def test_runs_of_one_seed_are_no_seeds_of_one_condition(tmp_path: Path, seeds: tuple[int, int]):
    for name, seed in zip("ab", seeds, strict=True):
        made_run(tmp_path / name, {"p": [2.0]}, run_seed=seed)
    named = texts(plots.best_by_condition(load_runs(tmp_path)))
    assert ({"a", "b"} <= named) == (seeds == (0, 0))


def test_a_problem_without_a_turn_under_a_condition_has_a_dash(tmp_path: Path):
    made_run(tmp_path / "a", {"p": [2.0], "q": [3.0]})
    made_run(tmp_path / "b", {"p": [1.5]}, strategy="sample")
    figure = plots.best_by_condition(load_runs(tmp_path))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["q", "p"]
    assert [text.get_text() for text in axes.texts] == ["3.00", "-", "2.00", "1.50"]
    assert "a dash: it has none" in figure.get_supxlabel()
