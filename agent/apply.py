"""`kernel-refinery apply`: a kernel in a user's model, measured with it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Option

from evaluator.command.command_line import serve


def command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="FILE:FUNCTION",
            help="A function of your file that returns (model, inputs), such as my_model.py:build.",
        ),
    ],
    kernel: Annotated[
        Path, Option("--kernel", metavar="FILE", help="best/PROBLEM.py of a run, or the run.")
    ],
    module: Annotated[
        str | None,
        Option("--module", metavar="NAME", help="Only in place of this one. [all that it fits]"),
    ] = None,
    against: Annotated[
        Literal["eager", "compile", "max_autotune"],
        Option(metavar="eager|compile|max_autotune", help="What its cases must be faster than."),
    ] = "eager",
    allow_unsafe: Annotated[
        bool, Option("--allow-unsafe", help="Take a kernel that may open files or start processes.")
    ] = False,
) -> None:
    """Time a model with a kernel and without, eager and compiled, and compare its results.

    Nothing is changed: kernel_refinery.apply(model, kernel, inputs) does the same in your program.
    """
    from agent.deployment.applied import apply
    from agent.recording.model_file import build

    built, inputs = build(model)
    applied = apply(
        built, kernel, inputs, module=module, against=against, allow_unsafe=allow_unsafe
    )
    typer.echo("\n".join(applied.lines()))


if __name__ == "__main__":
    sys.exit(serve(command, "python -m agent.apply"))
