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
    from matplotlib.figure import Figure

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
FORMATS = ("svg", "pdf", "png")


class Picture(StrEnum):
    """What can be drawn."""

    TRAJECTORIES = "trajectories"
    """Of one run: every call of each problem."""
    BY_CALL = "by-call"
    """Best so far after each call, a line a run."""
    BY_TOKENS = "by-tokens"
    """The same against what was spent; so are the next three."""
    BY_DOLLARS = "by-dollars"
    BY_SECONDS = "by-seconds"
    BY_DEVICE_SECONDS = "by-device-seconds"
    FAST_P = "fast-p"
    """The share of problems that are faster than p, for every p."""
    PAIRED = "paired"
    """Of two runs: the second over the first after each call."""
    SPENDING = "spending"
    """Where time and tokens went."""
    STATUSES = "statuses"
    """From a turn's status to the next one's, of one run."""
    STATUSES_BY_CALL = "statuses-by-call"
    """How many answers of each call were correct, a panel a condition."""
    BY_PROBLEM = "by-problem"
    """The best kernel of each problem, a mark a run."""
    KERNELS = "kernels"
    """Of one problem of one run (`--problem`): where the time of each turn goes."""
    BY_CONDITION = "by-condition"
    """The best kernel of each problem under each condition, as a table."""
    BUDGETS = "budgets"
    """Of one study: conditions and contrasts at equal budgets."""
    ADVICE = "advice"
    """What came of following each rule of advice."""


OF_ALL_RUNS = (
    Picture.BY_CALL,
    Picture.BY_TOKENS,
    Picture.BY_DOLLARS,
    Picture.BY_SECONDS,
    Picture.BY_DEVICE_SECONDS,
    Picture.FAST_P,
    Picture.SPENDING,
    Picture.STATUSES_BY_CALL,
    Picture.BY_PROBLEM,
    Picture.BY_CONDITION,
)
"""Pictures of any number of runs."""

OF_A_STUDY = (
    Picture.BUDGETS,
    Picture.BY_CONDITION,
    Picture.STATUSES_BY_CALL,
    Picture.SPENDING,
    Picture.ADVICE,
)
"""Pictures of a study, whose runs are too many for a line each."""

RUNS_WANTED = {Picture.TRAJECTORIES: 1, Picture.STATUSES: 1, Picture.KERNELS: 1, Picture.PAIRED: 2}


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
        Option(metavar="NAME", help="Of the study, for `budgets`; repeatable. [all]"),
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
    """The picture. Raises `UsageError` where the runs can't be read, or are too many or too few."""
    from experiments import plots, problem_plots, study_plots, trajectory_plots
    from experiments.analysis.trajectory import Trajectory
    from experiments.comparison import compare_runs
    from experiments.runs import load_runs, run_folders
    from experiments.study.study_report import study_report

    if (problem is not None) != (picture is Picture.KERNELS):
        raise UsageError(f"--problem ID goes with {Picture.KERNELS}, which needs it")
    if conditions and picture is not Picture.BUDGETS:
        raise UsageError(f"--condition NAME goes with {Picture.BUDGETS}")
    if picture is Picture.BUDGETS:
        if len(runs) != 1:
            raise UsageError(f"{picture} takes 1 study, and {len(runs)} are named")
        return study_plots.at_equal_budgets(study_report(runs[0]), conditions=conditions)
    folders = [folder for path in runs for folder in run_folders(path)]
    wanted = RUNS_WANTED.get(picture)
    if wanted is not None and len(folders) != wanted:
        raise UsageError(
            f"{picture} takes {wanted} run{'s' * (wanted > 1)}, and {len(folders)} are there"
        )
    if picture is Picture.PAIRED:
        return plots.paired_by_call(compare_runs(*folders))
    if problem is not None:
        return trajectory_plots.kernel_times(Trajectory.read(folders[0], problem))
    turns = load_runs(folders)
    draw: dict[Picture, Callable[[], Figure]] = {
        Picture.TRAJECTORIES: lambda: plots.trajectories(turns),
        Picture.BY_CALL: lambda: plots.best_by_call(turns),
        Picture.BY_TOKENS: lambda: plots.best_by_cost(turns, "tokens"),
        Picture.BY_DOLLARS: lambda: plots.best_by_cost(turns, "cost_usd"),
        Picture.BY_SECONDS: lambda: plots.best_by_cost(turns, "seconds_wall"),
        Picture.BY_DEVICE_SECONDS: lambda: plots.best_by_cost(turns, "seconds_device"),
        Picture.FAST_P: lambda: plots.fast_p_curve(turns),
        Picture.SPENDING: lambda: plots.spending(turns),
        Picture.STATUSES: lambda: plots.status_steps(turns),
        Picture.STATUSES_BY_CALL: lambda: plots.statuses_by_call(turns),
        Picture.BY_PROBLEM: lambda: problem_plots.best_by_problem(turns),
        Picture.BY_CONDITION: lambda: problem_plots.best_by_condition(turns),
        Picture.ADVICE: lambda: study_plots.advice_outcomes(folders),
    }
    return draw[picture]()


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.plot"))
