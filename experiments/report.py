"""python -m experiments.report STUDY_OR_RUN... : what runs reached and spent, text or page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
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
        Argument(help="A study, run directories, or folders of them.", metavar="STUDY_OR_RUN..."),
    ],
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="FILE.html", help="Write one page that opens offline."),
    ] = None,
    live: Annotated[
        bool, Option("--live", help="Serve that page on loopback, and refresh it as turns come.")
    ] = False,
    port: Annotated[int, Option("--port", help="Of --live. [any free one]", min=0, max=65535)] = 0,
    pdf_figures: Annotated[
        Path | None,
        Option("--pdf-figures", metavar="DIR", help="Write the figures of a paper as PDF files."),
    ] = None,
    seed: Annotated[int, Option("--seed", help="Seed of the bootstrap.")] = 0,
    as_json: Annotated[bool, Option("--json", help="One JSON object a run, a line each.")] = False,
    markdown: Annotated[bool, Option("--markdown", help="As Markdown, for a README.")] = False,
) -> None:
    """Sum runs up: shares of problems solved and sped up, speedups with intervals, what it cost."""
    from experiments.analysis.run_facts import load_all
    from experiments.analysis.run_report import report_on
    from problems.errors import UsageError

    if sum((as_json, markdown, live, output is not None or pdf_figures is not None)) > 1:
        raise UsageError("--json, --markdown, --live and files exclude each other; choose one")
    if output is not None:
        write_page(runs, output)
    if pdf_figures is not None:
        write_figures(runs, pdf_figures)
    if live:
        serve_page(runs, port)
    if live or output is not None or pdf_figures is not None:
        return
    for place, run in enumerate(load_all(runs)):
        told = report_on(run, seed=seed)
        if as_json:
            typer.echo(told.model_dump_json(by_alias=True))
        elif markdown:
            typer.echo("\n".join([""] * (place > 0) + list(markdown_lines(told))))
        else:
            print_lines([("", "")] * (place > 0) + list(report_lines(told)))


def write_page(paths: list[Path], output: Path) -> None:
    """The page of a study or of runs, as one file. Raises `UsageError`."""
    from experiments.page.collection import collect
    from experiments.page.page import static_page
    from experiments.page.sources import Sources
    from problems.errors import UsageError

    collected = collect(Sources.at(paths))
    if not collected.folders:
        raise UsageError(f"{paths[0]} holds no turn yet; start or resume that run first")
    text = static_page(collected)
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"-o {output} can't be written: {error}") from error
    typer.echo(str(output))


def write_figures(paths: list[Path], folder: Path) -> None:
    """Each picture that several runs can have, as a PDF file. Raises `UsageError`."""
    from experiments.plot import OF_ALL_RUNS, drawn
    from problems.errors import UsageError

    for picture in OF_ALL_RUNS:
        figure = drawn(picture, paths)
        file = folder / f"{picture}.pdf"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(file, bbox_inches="tight")
        except OSError as error:
            raise UsageError(f"--pdf-figures {file} can't be written: {error}") from error
        typer.echo(str(file))


def serve_page(paths: list[Path], port: int) -> None:
    """Serve the page until Ctrl-C."""
    from experiments.page.live import LiveServer
    from experiments.page.sources import Sources

    with LiveServer(Sources.at(paths), port) as server:
        typer.echo(server.url)
        server.serve_forever()


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
