"""`python -m experiments.bench`: how quick the feedback is, in figures of this machine.

Each command has a module with `measure_NAME(...)`, a record of figures, and `told(figures)`, the
lines for a person. What is measured over a whole suite has commands of its own:
`experiments.bench.tasks` and `.wrong`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from agent.record.durable import write_whole
from evaluator.command.command_line import serve
from problems.errors import UsageError

if TYPE_CHECKING:
    from evaluator.record import Record

COMMANDS = {"latency", "throughput", "overhead", "serve", "streaming", "cluster"}

Devices = Annotated[
    list[str] | None,
    Option(help="cpu or cuda:N; throughput takes several. [the GPU if there is one]"),
]
Out = Annotated[Path | None, Option(help="Also write the figures here, beside those it holds.")]
Json = Annotated[bool, Option("--json", help="Figures on stdout.")]
TimingSeconds = Annotated[
    float, Option(help="Longest time spent on timing; plain's hundred calls take about 1 s.")
]

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Measure how quick the feedback is. Exit code 0: measured; 2: wrong usage.",
)


@app.command()
def latency(
    device: Devices = None,
    only: Annotated[list[str] | None, Option(help="cuda, triton or cpp. Repeatable.")] = None,
    candidates: Annotated[int | None, Option(help="The first so many.")] = None,
    side_by_side: Annotated[
        int | None, Option(help="Plain processes at a time. [a quarter of the cores]")
    ] = None,
    timing_seconds: TimingSeconds = 1.0,
    limit_s: Annotated[
        float | None, Option(help="Stop in time for this; the same command goes on.")
    ] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """The seconds of a turn, plain PyTorch's and ours, candidate by candidate."""
    import os

    from pydantic import ValidationError

    from evaluator.evaluation import Backend
    from experiments.bench.speed.catalogue import catalogue, runnable
    from experiments.bench.speed.latency import LatencyFigures, measure_latency, told

    first = _devices(device)[0]
    kept, there = _Kept(out, "latency"), runnable(first)
    try:
        wanted = [Backend(name) for name in only or ()] or list(there)
        before = kept.found.get("latency")
        figures = LatencyFigures.model_validate(before) if before else None
    except (ValueError, ValidationError) as error:
        raise UsageError(str(error).replace("\n", " ")) from None
    if lacking := [backend for backend in wanted if backend not in there]:
        raise UsageError(
            f"{' and '.join(lacking)} candidates don't run on {first}; --only takes"
            f" {' and '.join(there)} here"
        )
    found = measure_latency(
        catalogue(wanted, candidates),
        device=first,
        side_by_side=side_by_side or max(1, (os.cpu_count() or 1) // 4),
        timing_seconds=timing_seconds,
        limit_s=limit_s,
        before=figures,
        keep=kept.write,
    )
    kept.tell(found, told, as_json=as_json)


@app.command()
def throughput(
    device: Devices = None,
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
    plain_sample: Annotated[int, Option(help="So many one by one with plain PyTorch.")] = 0,
    timing_seconds: TimingSeconds = 1.0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Many candidates at once against one after the other."""
    from experiments.bench.speed.throughput import kernels_for, measure_throughput, told

    devices, kept = _devices(device), _Kept(out, "throughput")
    if suite is not None and plain_sample:
        raise UsageError(
            "--plain-sample has no kernel to build with --suite; leave one of them out"
        )
    found = measure_throughput(
        devices,
        kernels=kernels_for(devices[0], backend, suite, only),
        candidates=candidates,
        sample=sample,
        plain_sample=plain_sample,
        timing_seconds=timing_seconds,
        keep=kept.write,
    )
    kept.tell(found, told, as_json=as_json)


@app.command()
def overhead(out: Out = None, as_json: Json = False) -> None:
    """What a run costs beside its model and its judge."""
    from experiments.bench.loop.overhead import measure_overhead, told

    kept = _Kept(out, "overhead")
    kept.tell(measure_overhead(), told, as_json=as_json)


@app.command()
def streaming(
    device: Annotated[str, Option(help="auto, cpu or cuda:N.")] = "auto",
    tokens_per_second: Annotated[
        list[float] | None, Option(min=1, help="Of the model. Repeatable. [60 and 120]")
    ] = None,
    pairs: Annotated[int, Option(min=1, help="Of turns, at each rate.")] = 20,
    timing_seconds: TimingSeconds = 1.0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """A turn whose kernel is built while the model writes, against one that builds afterwards."""
    from experiments.bench.loop.streaming import measure_streaming, told

    kept = _Kept(out, "streaming")
    found = measure_streaming(
        _devices([device])[0],
        tokens_per_second=tokens_per_second or [60.0, 120.0],
        pairs=pairs,
        timing_seconds=timing_seconds,
        keep=kept.write,
    )
    kept.tell(found, told, as_json=as_json)


@app.command("serve")
def serve_(
    device: Annotated[str, Option(help="auto, cpu or cuda:N.")] = "auto",
    minutes: Annotated[float, Option(min=0.01, help="For each number in flight.")] = 10.0,
    in_flight: Annotated[
        list[int] | None, Option(min=1, help="Requests at a time. Repeatable. [1, 8 and 64]")
    ] = None,
    timing_seconds: TimingSeconds = 0.2,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """The server of verdicts under load: latency, lost and swapped answers, what it holds."""
    from experiments.bench.serving.serve import measure_serve, told

    kept = _Kept(out, "serve")
    found = measure_serve(
        _devices([device])[0],
        minutes=minutes,
        in_flight=in_flight or [1, 8, 64],
        timing_seconds=timing_seconds,
        keep=kept.write,
    )
    kept.tell(found, told, as_json=as_json)


@app.command()
def cluster(
    device: Annotated[str, Option(help="auto, cpu or cuda:0.")] = "auto",
    problems: Annotated[int, Option(min=1, help="The first so many of level 1.")] = 10,
    budget: Annotated[int, Option(min=1, help="Candidates for each.")] = 5,
    timing_seconds: TimingSeconds = 0.5,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """A run on a Ray cluster that loses a judge and its node, and the same answers without Ray."""
    from experiments.bench.serving.cluster import measure_cluster, told

    kept = _Kept(out, "cluster")
    found = measure_cluster(
        _devices([device])[0],
        problems=problems,
        budget=budget,
        timing_seconds=timing_seconds,
        keep=kept.write,
    )
    kept.tell(found, told, as_json=as_json)


def _devices(asked: list[str] | None) -> list[str]:
    from evaluator.hardware.device_choice import resolve_device

    return [resolve_device(each) for each in asked or ["auto"]]


class _Kept:
    """The file of `--out`, one object by command. Raises `UsageError` for one of something else."""

    def __init__(self, out: Path | None, command: str) -> None:
        self._out = out
        self._command = command
        self.found: dict[str, Any] = {}
        if out is None or not out.exists():
            return
        try:
            found = json.loads(out.read_text())
        except ValueError:
            found = None
        if not isinstance(found, dict) or not set(found) <= COMMANDS:
            raise UsageError(f"{out} holds no figures of the bench; move it away")
        self.found = found

    def write(self, figures: Record) -> None:
        """Put these figures in the place of the command's earlier ones."""
        self.found[self._command] = figures.model_dump(mode="json", by_alias=True)
        if self._out is not None:
            write_whole(self._out, json.dumps(self.found, indent=1) + "\n")

    def tell(self, figures: Any, told: Callable[[Any], list[str]], *, as_json: bool) -> None:
        """Keep the figures and print them."""
        self.write(figures)
        if as_json:
            typer.echo(json.dumps({self._command: self.found[self._command]}))
        else:
            typer.echo("\n".join([f"{self._command}:", *told(figures)]))


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.bench"))
