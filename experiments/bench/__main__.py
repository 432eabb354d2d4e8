"""`python -m experiments.bench`: how quick the feedback is, in figures of this machine.

Each section is a module in `speed`, `loop` or `cluster` with `measure_SECTION(...)`, a record of
figures, and `told(figures)`, the lines for a person. It is imported when it is asked for. What is
measured over a whole suite has commands of its own: `experiments.bench.tasks` and `.wrong`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evaluator.command.command_line import serve
from problems.errors import UsageError

if TYPE_CHECKING:
    from evaluator.record import Record


class Section(StrEnum):
    """What can be measured; each name is a module's."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"
    OVERHEAD = "overhead"
    CLUSTER = "cluster"
    PROFILE = "profile"


app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def bench(
    sections: Annotated[list[Section], typer.Argument(help="What to measure.")],
    device: Annotated[
        list[str] | None,
        typer.Option(help="cpu or cuda:N; throughput takes several. [the GPU if there is one]"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Also write the figures here, one object by section; latency goes on."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Figures on stdout.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="latency: cuda, triton or cpp. Repeatable.")
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            help="latency: the first so many; throughput: so many [100]; profile: so many [10]."
        ),
    ] = None,
    side_by_side: Annotated[
        int | None,
        typer.Option(help="latency: plain processes at a time. [a quarter of the cores]"),
    ] = None,
    sample: Annotated[int, typer.Option(help="throughput: so many one by one.")] = 10,
    plain_sample: Annotated[
        int, typer.Option(help="throughput: so many one by one with plain PyTorch.")
    ] = 0,
    timing_seconds: Annotated[
        float,
        typer.Option(help="Longest time spent on timing; plain's hundred calls take about 1 s."),
    ] = 1.0,
    limit_s: Annotated[
        float | None,
        typer.Option(help="latency: stop in time for this; the same command goes on."),
    ] = None,
) -> None:
    """Measure how quick the feedback is. Exit code 0: measured; 2: wrong usage."""
    from evaluator.hardware.device_choice import resolve_device

    devices = [resolve_device(each) for each in device or ["auto"]]
    kept = _kept(out)

    def keep(section: Section, figures: Record) -> None:
        kept[section] = figures.model_dump(mode="json", by_alias=True)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            draft = out.with_suffix(".draft")
            draft.write_text(json.dumps(kept, indent=1) + "\n")
            draft.replace(out)

    for section in sections:
        match section:
            case Section.LATENCY:
                lines = _latency(
                    devices[0],
                    only or [],
                    candidates,
                    side_by_side,
                    timing_seconds,
                    limit_s,
                    kept.get(section),
                    lambda figures: keep(Section.LATENCY, figures),
                )
            case Section.THROUGHPUT:
                lines = _throughput(
                    devices,
                    candidates or 100,
                    sample,
                    plain_sample,
                    timing_seconds,
                    lambda figures: keep(Section.THROUGHPUT, figures),
                )
            case Section.PROFILE:
                lines = _profile(
                    devices[0],
                    10 if candidates is None else candidates,
                    timing_seconds,
                    lambda figures: keep(Section.PROFILE, figures),
                )
            case _:
                lines = _other(section, keep)
        if not as_json:
            typer.echo("\n".join([f"{section}:", *lines]))
    if as_json:
        typer.echo(json.dumps({section: kept[section] for section in sections}))


def _kept(out: Path | None) -> dict[str, Any]:
    """What an earlier command wrote; raises `UsageError` for a file that isn't the bench's."""
    if out is None or not out.exists():
        return {}
    try:
        kept = json.loads(out.read_text())
    except ValueError as error:
        raise UsageError(f"{out} holds no figures of the bench ({error}); move it away") from None
    if not isinstance(kept, dict) or not set(kept) <= set(Section):
        raise UsageError(f"{out} holds no figures of the bench; move it away")
    return kept


def _latency(
    device: str,
    only: list[str],
    candidates: int | None,
    side_by_side: int | None,
    timing_seconds: float,
    limit_s: float | None,
    before: Any,
    keep: Callable[[Record], None],
) -> list[str]:
    import os

    from pydantic import ValidationError

    from evaluator.evaluation import Backend
    from experiments.bench.speed.catalogue import catalogue, runnable
    from experiments.bench.speed.latency import LatencyFigures, measure_latency, told

    there = runnable(device)
    try:
        wanted = [Backend(name) for name in only] or list(there)
        figures = LatencyFigures.model_validate(before) if before else None
    except (ValueError, ValidationError) as error:
        raise UsageError(str(error).replace("\n", " ")) from None
    if lacking := [backend for backend in wanted if backend not in there]:
        raise UsageError(
            f"{' and '.join(lacking)} candidates don't run on {device}; --only takes"
            f" {' and '.join(there)} here"
        )
    found = measure_latency(
        catalogue(wanted, candidates),
        device=device,
        side_by_side=side_by_side or max(1, (os.cpu_count() or 1) // 4),
        timing_seconds=timing_seconds,
        limit_s=limit_s,
        before=figures,
        keep=keep,
    )
    keep(found)
    return told(found)


def _throughput(
    devices: list[str],
    candidates: int,
    sample: int,
    plain_sample: int,
    timing_seconds: float,
    keep: Callable[[Record], None],
) -> list[str]:
    from experiments.bench.speed.throughput import measure_throughput, told

    found = measure_throughput(
        devices,
        candidates=candidates,
        sample=sample,
        plain_sample=plain_sample,
        timing_seconds=timing_seconds,
    )
    keep(found)
    return told(found)


def _profile(
    device: str, candidates: int, timing_seconds: float, keep: Callable[[Record], None]
) -> list[str]:
    from experiments.bench.speed.profile import measure_profile, told

    found = measure_profile(device, candidates=candidates, timing_seconds=timing_seconds)
    keep(found)
    return told(found)


def _other(section: Section, keep: Callable[[Section, Record], None]) -> list[str]:
    """A section that takes no options of ours."""
    from importlib import import_module

    name = f"experiments.bench.{section}"
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UsageError(f"this version can't measure {section}; see --help") from None
    figures = getattr(module, f"measure_{section}")()
    keep(section, figures)
    lines: list[str] = module.told(figures)
    return lines


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.bench"))
