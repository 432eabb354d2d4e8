from pathlib import Path

import pytest

from experiments import plots
from experiments.analysis.measures import FAST_1
from experiments.comparison import compare_runs
from experiments.runs import load_runs
from tests.experiments.made_runs import made_run, random_results


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


def test_every_run_is_drawn_however_many_there_are(tmp_path: Path):
    for seed in range(9):
        made_run(tmp_path / f"run{seed}", random_results(7, 5, gain=1.2, seed=seed), run_seed=seed)
    turns = load_runs(tmp_path)
    for figure in (plots.best_by_call(turns), plots.best_by_cost(turns), plots.fast_p_curve(turns)):
        lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 2]
        assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 9
        assert len({text for text in texts(figure) if text.startswith("run")}) == 9


def test_lines_are_labelled_with_what_the_run_did(folder: Path):
    turns = load_runs([folder / "refine", folder / "sample"])
    for figure in (
        plots.best_by_call(turns),
        plots.best_by_call(turns, FAST_1),
        plots.best_by_cost(turns),
        plots.fast_p_curve(turns),
        plots.spending(turns),
    ):
        assert {"refine G+E+P", "sample"} <= texts(figure)


def test_the_paired_picture_says_who_is_better_call_by_call(folder: Path):
    found = compare_runs(folder / "sample", folder / "refine")
    shown = texts(plots.paired_by_call(found))
    assert any("refine G+E+P (B) over sample (A)" in text for text in shown)
    verdicts = {row.verdict for row in found.by_call if row.figure == "speedup_kept"}
    assert {"unclear" if name == "unclear" else f"{name} is better" for name in verdicts} <= shown


def test_every_picture_says_of_how_many_and_by_whom(folder: Path):
    runs = [folder / "sample", folder / "refine"]
    turns = load_runs(runs)
    for figure in (
        plots.trajectories(turns[turns["strategy"] == "refine"]),
        plots.best_by_call(turns),
        plots.best_by_cost(turns),
        plots.fast_p_curve(turns),
        plots.paired_by_call(compare_runs(*runs)),
        plots.spending(turns),
        plots.statuses_by_call(turns),
        plots.status_steps(turns),
    ):
        said = " ".join(figure.get_supxlabel().split())
        assert said.startswith("n = 7 problems, 5 calls each, 1 seed.")
        assert "rule-based kernel writer, not a language model" in said


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


def test_runs_that_did_the_same_are_told_apart_by_name(folder: Path):
    turns = load_runs([folder / "refine", folder / "hopeless"])
    assert {"refine", "hopeless"} <= texts(plots.best_by_call(turns))


def test_a_run_without_a_kernel_can_be_drawn_too(folder: Path, tmp_path: Path):
    turns = load_runs(folder / "hopeless")
    pictures = (plots.trajectories, plots.best_by_call, plots.best_by_cost, plots.fast_p_curve)
    for number, draw in enumerate(pictures):
        draw(turns).savefig(tmp_path / f"{number}.png")
    assert plots.status_steps(turns).axes
