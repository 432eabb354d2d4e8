"""python -m experiments.report PATH [PATH...] : what runs, or a study, reached and spent."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from evaluator.command.command_line import print_lines, serve

if TYPE_CHECKING:
    from pydantic import BaseModel

    from experiments.study.report_text import ReportText

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
    from experiments.study.condition_report import THRESHOLDS
    from experiments.study.report_text import run_text, study_text
    from experiments.study.study_folder import FILE
    from experiments.study.study_report import study_report
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
    thresholds = sorted({*THRESHOLDS, *(p or ())})
    reports: list[tuple[BaseModel, ReportText]] = []
    for study in studies:
        found = study_report(study, seed=seed, thresholds=thresholds)
        reports.append((found, study_text(found)))
    others = [path for path in runs if path not in studies]
    for run in load_all(others) if others else ():
        told = report_on(run, seed=seed)
        reports.append((told, run_text(told)))
    for place, (model, text) in enumerate(reports):
        if as_json:
            typer.echo(model.model_dump_json(by_alias=True))
        elif markdown:
            typer.echo("\n".join([""] * (place > 0) + list(text.markdown())))
        else:
            print_lines([("", "")] * (place > 0) + list(text.plain()))


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.report"))
