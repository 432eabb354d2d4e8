"""python -m experiments.report PATH [PATH...] : what runs, or a study, reached and spent."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from evaluator.command.command_line import Line, print_lines, serve

if TYPE_CHECKING:
    from experiments.analysis.run_report import RunReport
    from experiments.analysis.table import Table

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def report(
    runs: Annotated[
        list[Path],
        Argument(help="Run directories, folders of them, or studies.", metavar="PATH..."),
    ],
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="FILE.html", help="Write one page that opens offline."),
    ] = None,
    live: Annotated[
        bool, Option("--live", help="Serve that page on loopback, and refresh it as turns come.")
    ] = False,
    port: Annotated[int, Option("--port", help="Of --live; 0: any.", min=0, max=65535)] = 0,
    pdf_figures: Annotated[
        Path | None,
        Option("--pdf-figures", metavar="DIR", help="Write the figures of a paper as PDF files."),
    ] = None,
    seed: Annotated[int, Option("--seed", help="Seed of the bootstrap.")] = 0,
    as_json: Annotated[bool, Option("--json", help="One JSON object a run or study.")] = False,
    markdown: Annotated[bool, Option("--markdown", help="As Markdown, for a README.")] = False,
    p: Annotated[
        list[float] | None,
        Option("--p", min=0, help="Of a study: fast_p at this p as well (repeatable)."),
    ] = None,
) -> None:
    """Sum runs up: shares of problems solved and sped up, speedups with intervals, what it cost.

    A study's report holds its answers, its conditions side by side, curves at equal budgets and how
    the turns went. -o writes all of it, with every turn, as a page.
    """
    from experiments.analysis.run_facts import load_all
    from experiments.analysis.run_report import report_on
    from experiments.study.study_folder import FILE
    from problems.errors import UsageError

    forms = (as_json, markdown, live, output is not None or pdf_figures is not None)
    if sum(forms) > 1:
        raise UsageError("--json, --markdown, --live and files exclude each other; choose one")
    studies = [path for path in runs if (path / FILE).is_file()]
    if p and len(studies) < len(runs):
        raise UsageError(f"--p is of studies (folders with {FILE}); leave it out")
    if live or output is not None or pdf_figures is not None:
        from experiments.page.output import serve_page, write_figures, write_page
        from experiments.page.sources import Sources

        sources = Sources.at(runs, seed=seed, more_thresholds=p or ())
        if output is not None:
            write_page(sources, output)
        if pdf_figures is not None:
            write_figures(runs, pdf_figures)
        if live:
            serve_page(sources, port)
        return
    for place, study in enumerate(studies):
        _report_study(study, seed, as_json, markdown, p or (), first=place == 0)
    others = [path for path in runs if path not in studies]
    for place, run in enumerate(load_all(others) if others else (), start=len(studies)):
        told = report_on(run, seed=seed)
        if as_json:
            typer.echo(told.model_dump_json(by_alias=True))
        elif markdown:
            typer.echo("\n".join([""] * (place > 0) + list(markdown_lines(told))))
        else:
            print_lines([("", "")] * (place > 0) + list(report_lines(told)))


def _report_study(
    folder: Path,
    seed: int,
    as_json: bool,
    markdown: bool,
    p: Sequence[float],
    *,
    first: bool,
) -> None:
    from experiments.study.condition_report import THRESHOLDS
    from experiments.study.report_text import markdown_lines, text_lines
    from experiments.study.study_report import study_report

    thresholds = sorted({*THRESHOLDS, *p})
    told = study_report(folder, seed=seed, thresholds=thresholds)
    if as_json:
        typer.echo(told.model_dump_json(by_alias=True))
    elif markdown:
        typer.echo("\n".join([""] * (not first) + list(markdown_lines(told))))
    else:
        print_lines([("", "")] * (not first) + list(text_lines(told)))


def report_lines(told: RunReport) -> Iterator[Line]:
    """A run's report, line by line."""
    facts = told.facts
    yield "bold", f"{facts.run}: {facts.title}"
    yield "", _circumstances(told)
    yield from (("yellow", note) for note in _notes(told))
    yield "", ""
    heading, *lines = problem_table(told).plain()
    yield "bold", heading
    for problem, line in zip(told.problems, lines, strict=True):
        yield ("green" if problem.verdict == "faster" else ""), line
    for table in (figure_table(told), *further_tables(told)):
        yield "", ""
        yield from (("", line) for line in table.plain())


def markdown_lines(told: RunReport) -> Iterator[str]:
    """A run's report as Markdown."""
    yield f"### {told.facts.run}"
    yield ""
    yield f"{told.facts.title}. {_circumstances(told)}"
    yield from _notes(told)
    yield ""
    yield from problem_table(told).markdown()
    for table in (figure_table(told), *further_tables(told)):
        yield ""
        yield from table.markdown()


def _circumstances(told: RunReport) -> str:
    facts = told.facts
    made = ", ".join(f"{count} {status}" for status, count in told.statuses.items())
    torch = f", torch {facts.versions['torch']}" if "torch" in facts.versions else ""
    commit = f", commit {facts.commit}" if facts.commit else ""
    rival = f" Speedups are over eager ({facts.eager_flags})." if facts.eager_flags else ""
    return (
        f"{facts.backend} on {facts.device}, {facts.precision}{torch}{commit};"
        f" {len(told.problems)} problems, {facts.turns} calls: {made}.{rival}"
    )


def _notes(told: RunReport) -> Iterator[str]:
    facts = told.facts
    if facts.unbegun:
        yield f"note: no turn yet of {len(facts.unbegun)} problems ({', '.join(facts.unbegun[:4])})"
    short = [problem.problem for problem in told.problems if problem.calls < facts.budget]
    if short:
        yield f"note: fewer than {facts.budget} calls on {len(short)} problems"
    if len(facts.rungs) > 1:
        yield f"note: profiles come from different profilers ({', '.join(facts.rungs)})"


def problem_table(told: RunReport) -> Table:
    """One row a problem: its best kernel, and what finding it cost."""
    from experiments.analysis.table import DASH, Table, figure, interval

    compiled = any(problem.compile_speedup is not None for problem in told.problems)
    heading = ["problem", "correct", "best over eager", "verdict", "found at call"]
    heading += ["over compile"] * compiled
    scored = any(problem.sol_score is not None for problem in told.problems)
    heading += ["of the bound", *["SOL score"] * scored, "bottleneck", "tokens", "dollars", "wall"]
    rows = []
    for problem in told.problems:
        absent = "not timed" if problem.correct else "no correct kernel"
        cells = [
            problem.problem,
            f"{problem.correct}/{problem.calls}",
            interval(problem.speedup, "ratio", absent),
            problem.verdict or "-",
            str(problem.best_call or "-"),
        ]
        if compiled:
            cells.append(figure(problem.compile_speedup, "ratio", DASH))
        cells.append(figure(problem.sol_fraction, "share", DASH))
        if scored:
            cells.append(DASH if problem.sol_score is None else f"{problem.sol_score:.2f}")
        cells += [
            problem.bottleneck or "-",
            figure(problem.tokens, "tokens"),
            figure(problem.cost_usd, "usd"),
            figure(problem.seconds_wall, "seconds"),
        ]
        rows.append(tuple(cells))
    left = frozenset({0, 3, heading.index("bottleneck")})
    return Table(tuple(heading), rows, left)


def figure_table(told: RunReport) -> Table:
    """The figures of the run as a whole, with their intervals."""
    from experiments.analysis.table import Table, interval

    rows = []
    for row in told.figures:
        label = row.label
        if row.problems < len(told.problems):
            label = f"{label} ({row.problems} of {len(told.problems)})"
        rows.append((label, interval(row.estimate, row.unit)))
    return Table(("over all problems", "mean and 95 % interval"), rows)


def further_tables(told: RunReport) -> Iterator[Table]:
    """By level, and of samples by how many there are; each only where it says something."""
    from experiments.analysis.table import Table, interval

    if told.levels:
        labels = [figure.label for figure in told.levels[0].figures]
        rows = [
            (
                str(level.level or "none"),
                str(level.problems),
                *(interval(figure.estimate, figure.unit) for figure in level.figures),
            )
            for level in told.levels
        ]
        yield Table(("level", "problems", *labels), rows)
    if told.at_k:
        rows = [
            (
                str(each.k),
                interval(each.correct, "share"),
                interval(each.faster, "share"),
                interval(each.best, "ratio"),
            )
            for each in told.at_k
        ]
        yield Table(("best of k samples", "correct", "> 1x", "speedup, at least 1"), rows)


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.report"))
