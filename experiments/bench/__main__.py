"""`python -m experiments.bench`: how quick the feedback is, in figures of this machine.

What is measured over a whole suite has commands of its own: `experiments.bench.tasks`, `.wrong` and
`.known_ratios`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from agent.record.durable import write_whole
from evaluator.command.command_line import serve
from problems.errors import UsageError

TimingSeconds = Annotated[float, Option(help="Longest time spent on timing.")]

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Measure how quick the feedback is. Exit code 0: measured; 2: wrong usage.",
)


@app.command()
def latency(
    device: Annotated[str, Option(help="auto, cpu or cuda:N.")] = "auto",
    only: Annotated[list[str] | None, Option(help="cuda, triton or cpp. Repeatable.")] = None,
    candidates: Annotated[int | None, Option(help="The first so many.")] = None,
    timing_seconds: TimingSeconds = 1.0,
    out: Annotated[
        Path | None,
        Option("--out", "-o", help="JSON lines that are gone on with; a table goes beside them."),
    ] = None,
) -> None:
    """The seconds of a verdict, candidate by candidate."""
    from evaluator.evaluation import Backend
    from evaluator.hardware.device_choice import resolve_device
    from evaluator.settings import Settings
    from experiments.bench.speed.catalogue import catalogue, runnable
    from experiments.bench.speed.latency import LatencyRow, markdown, measure_latency
    from experiments.bench.suites.result_lines import ResultLines

    there = runnable(device := resolve_device(device))
    try:
        wanted = [Backend(name) for name in only or ()] or list(there)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if lacking := [backend for backend in wanted if backend not in there]:
        raise UsageError(
            f"{' and '.join(lacking)} candidates don't run on {device}; --only takes"
            f" {' and '.join(there)} here"
        )
    lines = ResultLines(out, LatencyRow)
    settings = Settings(device=device, timing_seconds=timing_seconds, audit="never")
    measure_latency(catalogue(wanted, candidates), settings, lines)
    lines.sum_up(markdown(lines.parts, lines.rows))


@app.command()
def throughput(
    device: Annotated[
        list[str] | None, Option(help="cpu or cuda:N. Repeatable. [the GPU if there is one]")
    ] = None,
    backend: Annotated[
        str | None, Option(help="cuda, triton or cpp. [the first that runs there]")
    ] = None,
    suite: Annotated[
        Path | None,
        Option(help="Judge the own modules of these tasks, which need no build, instead."),
    ] = None,
    only: Annotated[
        str | None, Option(help="A regular expression, searched for in the ids of --suite.")
    ] = None,
    candidates: Annotated[int, Option(help="So many at once.")] = 100,
    sample: Annotated[int, Option(help="So many one by one.")] = 10,
    timing_seconds: TimingSeconds = 1.0,
    out: Annotated[Path | None, Option("--out", "-o", help="Also write the figures here.")] = None,
) -> None:
    """Many candidates at once against one after the other."""
    from evaluator.hardware.device_choice import resolve_device
    from experiments.bench.speed.throughput import (
        ThroughputFigures,
        kernels_for,
        measure_throughput,
        throughput_lines,
    )

    def keep(figures: ThroughputFigures) -> None:
        if out is not None:
            write_whole(out, figures.model_dump_json(indent=1) + "\n")

    devices = [resolve_device(each) for each in device or ["auto"]]
    found = measure_throughput(
        devices,
        kernels=kernels_for(devices[0], backend, suite, only),
        candidates=candidates,
        sample=sample,
        timing_seconds=timing_seconds,
        keep=keep,
    )
    typer.echo("\n".join(throughput_lines(found)))


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.bench"))
