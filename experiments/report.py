"""python -m experiments.report PATH [PATH...] : what runs, or a study, reached and spent."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from evaluator.command.command_line import print_lines, serve
from problems.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from experiments.page.sources import Sources
    from experiments.study.report_text import ReportText


def command(
    runs: Annotated[
        list[Path],
        Argument(
            help="Run directories, folders of them, or studies; or archives of these.",
            metavar="PATH...",
        ),
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
    p: Annotated[
        list[float] | None,
        Option("--p", min=0, help="Of a study: fast_p at this p as well (repeatable)."),
    ] = None,
) -> None:
    """Sum runs up: shares of problems solved and sped up, speedups with intervals, what it cost.

    A study's report holds its answers, its conditions side by side, curves at equal budgets and how
    the turns went. -o writes all of it, with every turn, as a page.
    """
    from agent.record.archive import unpacked
    from experiments.analysis.run_facts import load_all
    from experiments.analysis.run_report import report_on
    from experiments.study.condition_report import THRESHOLDS
    from experiments.study.report_text import run_text, study_text
    from experiments.study.study_folder import FILE
    from experiments.study.study_report import study_report

    forms = (as_json, live, output is not None or pdf_figures is not None)
    if sum(forms) > 1:
        raise UsageError("--json, --live and files exclude each other; choose one")
    runs = [unpacked(path) for path in runs]
    studies = [path for path in runs if (path / FILE).is_file()]
    if p and len(studies) < len(runs):
        raise UsageError(f"--p is of studies (folders with {FILE}); leave it out")
    if live or output is not None or pdf_figures is not None:
        from experiments.page.sources import Sources

        sources = Sources.at(runs, seed=seed, more_thresholds=p or ())
        if output is not None:
            _write_page(sources, output)
        if pdf_figures is not None:
            _write_figures(sources, pdf_figures)
        if live:
            from experiments.page.live import LiveServer

            with LiveServer(sources, port) as server:
                typer.echo(server.url)
                server.serve_forever()
        return
    thresholds = sorted({*THRESHOLDS, *(p or ())})
    reports: list[tuple[BaseModel, ReportText]] = []
    for study in studies:
        found = study_report(study, seed=seed, thresholds=thresholds)
        reports.append((found, study_text(found)))
    others = [path for path in runs if path not in studies]
    for run in load_all(others) if others else ():
        of_run = report_on(run, seed=seed)
        reports.append((of_run, run_text(of_run)))
    for place, (model, text) in enumerate(reports):
        if as_json:
            typer.echo(model.model_dump_json())
        else:
            print_lines([("", "")] * (place > 0) + list(text.plain()))


def _write_page(sources: Sources, output: Path) -> None:
    """The page of a study or of runs, as one file. Raises `UsageError`."""
    from experiments.page.collection import collect
    from experiments.page.page import static_page

    collected = collect(sources)
    if not collected.folders:
        raise UsageError(f"{sources.paths[0]} holds no turn yet; start or resume that run first")
    text = static_page(collected)
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"-o {output} can't be written: {error}") from error
    typer.echo(str(output))


def _write_figures(sources: Sources, folder: Path) -> None:
    """The pictures of any number of runs, or of one study, as PDF files. Raises `UsageError`."""
    if find_spec("matplotlib") is None:
        raise UsageError("--pdf-figures needs matplotlib: pip install matplotlib")
    from experiments import plots
    from experiments.page.columns import columns_of, curves_of_runs
    from experiments.runs import load_runs
    from experiments.study.study_report import study_report

    turns = load_runs(sources.paths)
    if sources.study is not None:
        curves = study_report(sources.study, seed=sources.seed).curves
    else:
        curves = tuple(curves_of_runs(columns_of(sources, None), sources.seed))
    figures = {
        "budgets": plots.at_equal_budgets(curves, turns),
        "by-condition": plots.best_by_condition(turns),
        "fast-p": plots.fast_p_curve(turns),
        "spending": plots.spending(turns),
        "statuses-by-call": plots.statuses_by_call(turns),
    }
    for name, figure in figures.items():
        file = folder / f"{name}.pdf"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(file, bbox_inches="tight")
        except OSError as error:
            raise UsageError(f"--pdf-figures {file} can't be written: {error}") from error
        typer.echo(str(file))


if __name__ == "__main__":
    sys.exit(serve(command, "python -m experiments.report"))
