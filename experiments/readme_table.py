"""python -m experiments.readme_table [--check] : the results in README.md, from what is committed.

Between `<!-- results:begin -->` and `<!-- results:end -->` stands what `experiments/results/`
holds, and nothing that was typed by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from evaluator.command.command_line import serve

if TYPE_CHECKING:
    from experiments.analysis.run_facts import LoadedRun
    from experiments.analysis.run_report import RunReport
    from experiments.analysis.table import Table

BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
ROOT = Path(__file__).resolve().parent.parent

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def readme_table(
    check: Annotated[
        bool, Option("--check", help="Change nothing; leave with 1 where it is out of date.")
    ] = False,
    readme: Annotated[Path, Option("--readme", help="The file to write into.")] = ROOT
    / "README.md",
    results: Annotated[Path, Option("--results", help="A folder of compact runs.")] = ROOT
    / "experiments"
    / "results",
) -> int:
    """Write the table of committed results into the README."""
    text = _text(readme)
    wanted = with_region(text, results_markdown(results), readme)
    if wanted == text:
        typer.echo(f"{readme.name} is up to date", err=True)
        return 0
    if check:
        typer.echo(
            f"{readme.name} is not what {results} says; run python -m experiments.readme_table",
            err=True,
        )
        return 1
    readme.write_text(wanted, encoding="utf-8")
    typer.echo(f"{readme.name} written", err=True)
    return 0


def _text(readme: Path) -> str:
    from problems.errors import UsageError

    if not readme.is_file():
        raise UsageError(f"there is no {readme}; name the file with --readme")
    return readme.read_text(encoding="utf-8")


def with_region(text: str, content: str, readme: Path) -> str:
    """`text` with `content` between the marks. Raises `UsageError` where there are no marks."""
    from problems.errors import UsageError

    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UsageError(f"{readme} has no {BEGIN} ... {END}; put both marks where the table goes")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def results_markdown(results: Path) -> str:
    """The tables: one section a device, precision and number of calls, in the order of the names.

    Raises `UsageError` where `results` holds no run.
    """
    from experiments.analysis.run_facts import load_all

    groups: dict[tuple[str, str, str, int], list[LoadedRun]] = {}
    for run in load_all([results]):
        facts = run.facts
        key = (facts.device, facts.backend, facts.precision, facts.budget)
        groups.setdefault(key, []).append(run)
    return "\n\n".join("\n".join(_section(runs)) for runs in groups.values())


def _section(runs: Sequence[LoadedRun]) -> Iterator[str]:
    from experiments.analysis.run_report import report_on
    from experiments.analysis.table import Table

    runs = sorted(runs, key=lambda run: run.facts.strategy != "sample")
    told = [report_on(run) for run in runs]
    names = _names(told)
    yield _heading(told)
    yield ""
    heading = (
        "run",
        "correct",
        "faster than eager",
        "clearly",
        "clearly > 1.5x",
        "speedup, at least 1",
        "correct answers",
        "tokens a problem",
        "wall a problem",
    )
    rows = [_run_row(name, report) for name, report in zip(names, told, strict=True)]
    yield from Table(heading, rows).markdown()
    yield ""
    yield from _problem_table(names, told).markdown()
    for first, second in combinations(range(len(runs)), 2):
        yield from _verdict(names, runs, first, second)
    yield ""
    yield (
        "Speedups are over PyTorch eager, measured in alternation, with 95 % intervals. *Clearly*:"
        " the whole interval lies above 1, or above 1.5. *Speedup*: geometric mean over all"
        " problems; a problem without a faster correct kernel counts as 1. Failures are never"
        " left out."
    )


def _names(told: Sequence[RunReport]) -> list[str]:
    """What each run did, in few words; its folder's name too where two did the same."""
    from experiments.analysis.label import model_label, policy_label

    models = {report.facts.model for report in told}
    names = []
    for report in told:
        facts = report.facts
        name = policy_label(facts.strategy, facts.feedback)
        names.append(name if len(models) == 1 else f"{name}, {model_label(facts.model)}")
    return [
        name if names.count(name) == 1 else f"{name} ({report.facts.run})"
        for name, report in zip(names, told, strict=True)
    ]


def _heading(told: Sequence[RunReport]) -> str:
    from experiments.analysis.label import model_label

    facts = told[0].facts
    models = dict.fromkeys(model_label(report.facts.model) for report in told)
    versions = dict.fromkeys(report.facts.versions.get("torch", "") for report in told)
    commits = dict.fromkeys(report.facts.commit for report in told)
    rungs = dict.fromkeys(rung for report in told for rung in report.facts.rungs)
    parts = [f"{facts.backend}, {facts.precision}, {facts.budget} calls a problem"]
    parts += [f"torch {' and '.join(versions)}"] * any(versions)
    parts += [f"profiled by {' and '.join(rungs)}"] * bool(rungs)
    parts += [f"commit {' and '.join(commits)}"] * any(commits)
    return f"**{facts.device}** ({'; '.join(parts)}), with {' and '.join(models)}:"


def _run_row(name: str, report: RunReport) -> tuple[str, ...]:
    from experiments.analysis.table import figure, interval

    def count(key: str) -> str:
        row = report.figure(key)
        share = row.estimate.value if row.estimate else 0.0
        return f"{round(share * row.problems)} of {row.problems}"

    kept, correct = (report.figure(key).estimate for key in ("speedup_kept", "correct_answers"))
    tokens, wall = (report.figure(key).estimate for key in ("tokens", "seconds_wall"))
    return (
        name,
        count("fast_0"),
        count("fast_1"),
        count("clear_1"),
        count("clear_1.5"),
        interval(kept, "ratio", ""),
        figure(correct.value if correct else None, "share"),
        figure(tokens.value if tokens else None, "tokens"),
        figure(wall.value if wall else None, "seconds"),
    )


def _problem_table(names: Sequence[str], told: Sequence[RunReport]) -> Table:
    from experiments.analysis.table import Table, interval

    cells: dict[str, list[str]] = {}
    for place, report in enumerate(told):
        for problem in report.problems:
            row = cells.setdefault(problem.problem, ["not run"] * len(told))
            absent = "not timed" if problem.correct else "none correct"
            row[place] = interval(problem.speedup, "ratio", absent)
    rows = [(name, *row) for name, row in cells.items()]
    return Table(("best kernel over eager", *names), rows)


def _verdict(
    names: Sequence[str], runs: Sequence[LoadedRun], first: int, second: int
) -> Iterator[str]:
    """One line on two runs of the section, where they can be compared."""
    from experiments.analysis.table import gap
    from experiments.comparison import compare_runs
    from problems.errors import UsageError

    a, b = names[first], names[second]
    yield ""
    try:
        found = compare_runs(Path(runs[first].facts.path), Path(runs[second].facts.path))
    except UsageError as error:
        yield f"{b} against {a}: not compared ({error})."
        return
    row = next(row for row in found.rows if row.figure == "speedup_kept")
    if row.difference is None:
        return
    better = {"A": f"{a} is better", "B": f"{b} is better"}.get(row.verdict, "unclear")
    change = gap(row.difference, "ratio")
    yield f"{b} against {a}, paired over {row.problems} problems: speedup {change}, {better}."


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.readme_table"))
