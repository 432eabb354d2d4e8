"""python -m experiments.plot PICTURE RUN... -o FILE : one picture of runs, as a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from evaluator.command.command_line import serve
from problems.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from experiments.study.curves import Curve

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
FORMATS = ("svg", "pdf", "png")


class Picture(StrEnum):
    TRAJECTORIES = "trajectories"
    """Of one run: every call of each problem."""
    BUDGETS = "budgets"
    """Best so far at equal budgets: of runs, or of a study with its contrasts."""
    FAST_P = "fast-p"
    """The share of problems that are faster than p, for every p."""
    SPENDING = "spending"
    STATUSES_BY_CALL = "statuses-by-call"
    """How many answers of each call were correct, a panel a condition."""
    KERNELS = "kernels"
    """Of one problem of one run (`--problem`): where the time of each turn goes."""
    BY_CONDITION = "by-condition"
    """The best kernel of each problem under each condition, as a table."""


OF_ANY_RUNS = (
    Picture.BUDGETS,
    Picture.BY_CONDITION,
    Picture.FAST_P,
    Picture.SPENDING,
    Picture.STATUSES_BY_CALL,
)
"""Pictures of any number of runs, and of a study."""


@app.command()
def plot(
    picture: Annotated[Picture, Argument(help="What to draw.")],
    runs: Annotated[
        list[Path], Argument(help="Run directories, or folders of them.", metavar="RUN...")
    ],
    output: Annotated[
        Path, Option("--output", "-o", metavar="FILE", help=f"Ends in .{', .'.join(FORMATS)}.")
    ],
    problem: Annotated[
        str | None, Option("--problem", metavar="ID", help="Of the run, for `kernels`.")
    ] = None,
    condition: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Only this one, for `budgets`; repeatable. [all]"),
    ] = None,
) -> None:
    """Draw one picture of runs, as `experiments.plots` does for notebooks."""
    if output.suffix.removeprefix(".") not in FORMATS:
        raise UsageError(f"-o {output}: name a file that ends in .{', .'.join(FORMATS)}")
    figure = drawn(picture, runs, problem, condition or ())
    try:
        figure.savefig(output, bbox_inches="tight")
    except OSError as error:
        raise UsageError(f"-o {output} can't be written: {error}") from error
    typer.echo(str(output))


def drawn(
    picture: Picture,
    runs: Sequence[Path],
    problem: str | None = None,
    conditions: Sequence[str] = (),
) -> Figure:
    """The picture. Raises `UsageError` where the runs can't be read, or are too many."""
    from experiments import plots, trajectory_plots
    from experiments.analysis.trajectory import Trajectory
    from experiments.runs import load_runs, run_folders

    if (problem is not None) != (picture is Picture.KERNELS):
        raise UsageError(f"--problem ID goes with {Picture.KERNELS}, which needs it")
    if conditions and picture is not Picture.BUDGETS:
        raise UsageError(f"--condition NAME goes with {Picture.BUDGETS}")
    folders = [folder for path in runs for folder in run_folders(path)]
    if picture not in OF_ANY_RUNS and len(folders) != 1:
        raise UsageError(f"{picture} takes 1 run, and {len(folders)} are there")
    if problem is not None:
        return trajectory_plots.kernel_times(Trajectory.read(folders[0], problem))
    turns = load_runs(folders)
    if picture is Picture.BUDGETS:
        return plots.at_equal_budgets(_curves(runs), turns, only=conditions)
    draw: dict[Picture, Callable[[pd.DataFrame], Figure]] = {
        Picture.TRAJECTORIES: plots.trajectories,
        Picture.FAST_P: plots.fast_p_curve,
        Picture.SPENDING: plots.spending,
        Picture.STATUSES_BY_CALL: plots.statuses_by_call,
        Picture.BY_CONDITION: plots.best_by_condition,
    }
    return draw[picture](turns)


def _curves(runs: Sequence[Path]) -> Sequence[Curve]:
    from experiments.page.columns import columns_of, curves_of_runs
    from experiments.page.sources import Sources
    from experiments.study.study_report import study_report

    sources = Sources.at(runs)
    if sources.study is not None:
        return study_report(sources.study).curves
    return curves_of_runs(columns_of(sources, None))


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.plot"))
