"""python -m experiments.export FORMAT RUN... -o OUT : recorded runs for other programs."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from evaluator.command.command_line import serve
from problems.errors import UsageError

Runs = Annotated[
    list[Path], Argument(help="Run directories, or folders of them.", metavar="RUN...")
]
File = Annotated[Path, Option("--output", "-o", metavar="FILE", help="The file to write.")]
Folder = Annotated[Path, Option("--output", "-o", metavar="DIR", help="The folder to write to.")]
Follow = Annotated[
    bool, Option("--follow", help="Go on with new turns until the run's command has ended.")
]

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Hand recorded runs to other programs.",
)


def need(module: str, packages: str, what: str) -> None:
    """Raise `UsageError` where `module`, which comes with `packages`, is not installed."""
    if find_spec(module) is None:
        raise UsageError(f"{what} needs {module}: pip install {packages}")


@app.command()
def parquet(runs: Runs, output: File) -> None:
    """One row a turn, as a Parquet file."""
    need("pyarrow", "pyarrow", "export parquet")
    from experiments.export.table import write_parquet

    typer.echo(f"{output}: {write_parquet(runs, output)} turns", err=True)


@app.command()
def jsonl(runs: Runs, output: File) -> None:
    """Prompt, completion and reward, a line a turn."""
    from experiments.export.training_lines import write_training_lines

    written, left_out = write_training_lines(runs, output)
    note = f"; {left_out} left out, whose prompt or answer was not kept" if left_out else ""
    typer.echo(f"{output}: {written} turns{note}", err=True)


@app.command()
def inspect(runs: Runs, output: Folder) -> None:
    """A log of Inspect AI for each run."""
    need("inspect_ai", "inspect-ai", "export inspect")
    from experiments.export.inspect_log import write_inspect_logs

    for path in write_inspect_logs(runs, output):
        typer.echo(str(path))


@app.command()
def kernelbench(runs: Runs, output: Folder) -> None:
    """KernelBench's eval_results.json for each run."""
    from experiments.export.kernelbench import write_kernelbench

    paths, notes = write_kernelbench(runs, output)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    for path in paths:
        typer.echo(str(path))


@app.command()
def otlp(
    runs: Runs,
    endpoint: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="An OTLP/HTTP collector. [OTEL_EXPORTER_OTLP_ENDPOINT, or localhost:4318]",
        ),
    ] = None,
    follow: Follow = False,
) -> None:
    """OpenTelemetry spans of problems, turns and their stages."""
    packages = "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
    need("opentelemetry", packages, "export otlp")
    from experiments.export.recorded_run import send
    from experiments.export.spans import SpanSink

    sink = SpanSink(endpoint)
    send(runs, sink, follow=follow)
    typer.echo(f"{sink.spans} spans sent", err=True)


@app.command()
def wandb(
    runs: Runs,
    project: Annotated[str, Option(metavar="NAME", help="Project of W&B.")] = "kernel-refinery",
    output: Annotated[
        Path, Option("--output", "-o", metavar="DIR", help="Where W&B keeps its folder wandb.")
    ] = Path(),
    follow: Follow = False,
) -> None:
    """Runs of Weights & Biases (WANDB_MODE=offline: without a network)."""
    need("wandb", "wandb", "export wandb")
    from experiments.export.recorded_run import send
    from experiments.export.wandb_run import WandbSink

    sink = WandbSink(project, output)
    send(runs, sink, follow=follow)
    typer.echo(f"{sink.turns} turns logged", err=True)


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.export"))
