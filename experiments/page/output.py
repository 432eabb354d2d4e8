"""What `experiments.report` writes and serves besides text: a page, its live twin, PDF figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from experiments.page.sources import Sources
from experiments.plot import OF_ANY_RUNS, drawn
from problems.errors import UsageError


def write_page(sources: Sources, output: Path) -> None:
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


def write_figures(paths: Sequence[Path], folder: Path) -> None:
    """Each picture that any number of runs, or one study, can have, as a PDF file.

    Raises `UsageError`.
    """
    for picture in OF_ANY_RUNS:
        figure = drawn(picture, paths)
        file = folder / f"{picture}.pdf"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(file, bbox_inches="tight")
        except OSError as error:
            raise UsageError(f"--pdf-figures {file} can't be written: {error}") from error
        typer.echo(str(file))


def serve_page(sources: Sources, port: int) -> None:
    """Serve the page until Ctrl-C. Raises `UsageError`."""
    from experiments.page.live import LiveServer

    with LiveServer(sources, port) as server:
        typer.echo(server.url)
        server.serve_forever()
