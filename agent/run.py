"""python -m agent.run : a model writes kernels, they are judged, and it refines what it wrote."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from agent.config.options import RunOptions, merge_layers
from evaluator.command.command_line import serve
from evaluator.command.option import takes_options
from problems.errors import UsageError

if TYPE_CHECKING:
    from agent.resolution import Resolution

Settings = Annotated[
    list[str] | None,
    Option(
        "--config",
        "-c",
        metavar="FILE|KEY=VALUE",
        help="Settings from a YAML file, or a single one; repeatable. Options win over "
        "items, items over files.",
    ),
]
Built = Annotated[
    str | None,
    Option(
        "--from",
        metavar="FILE:FUNCTION",
        help="Instead of --problem: a function of your file that returns (model, inputs). The "
        "model is run, and the problem is made from what it gets.",
    ),
]
Part = Annotated[
    str | None,
    Option("--module", metavar="NAME", help="With --from: only this submodule of the model."),
]
Redo = Annotated[bool, Option("--redo", help="Start over: remove what the run directory holds.")]


@takes_options(RunOptions, without=("budget_profiles",))
def command(
    given: dict[str, object],
    config: Settings = None,
    built: Built = None,
    module: Part = None,
    dry_run: Annotated[
        bool,
        Option(
            "--dry-run",
            help="Show the settings, the problems, the first prompt and the most it can cost; "
            "call nothing.",
        ),
    ] = False,
    redo: Redo = False,
    require_correct: Annotated[
        bool,
        Option("--require-correct", help="Exit with 1 when some problem has no correct kernel."),
    ] = False,
    as_json: Annotated[
        bool, Option("--json", help="One JSON object with the result on stdout.")
    ] = False,
    display: Annotated[
        str | None,
        Option(
            "--display",
            metavar="rich|plain|none",
            help="The live view, on stderr. [rich on a terminal, plain elsewhere]",
        ),
    ] = None,
    draw: Annotated[
        bool, Option("--draw", help="Print the state machine as Mermaid, and leave.")
    ] = False,
) -> None:
    """Make a model write kernels for PyTorch modules, judge them, and let it refine them.

    With no options: three problems, refine, G+E+P, offline/tuner, on the GPU if there is one, else
    on the CPU. The same command again goes on where it was interrupted, and shows a finished run;
    a larger --budget extends it.

    Exit codes: 0 completed; 1 with --require-correct, when some problem has no correct kernel; 2 a
    mistake in what was asked, or a failure of the machine or of the model's provider; 3 prompts
    wait for their answers (relay/ with wait=0); 130 interrupted.
    """
    # What is heavy is imported where it is needed, so that --help answers at once.
    if draw:
        from agent.loop.graph import draw as draw_graph

        typer.echo(draw_graph())
        return
    forked: dict[str, object] = {}
    if given.get("fork"):
        from agent.fork import Fork

        forked = Fork.parse(str(given["fork"])).settings()
    resolution = resolved(merge_layers(config or [], given, forked), built, module)
    if dry_run:
        from agent.dry_run import show_plan

        show_plan(resolution, as_json=as_json)
        return
    from agent.job import run_job
    from agent.view.display import view_mode
    from agent.view.summary import tell

    result = run_job(resolution, view_mode(display), redo=redo)
    raise typer.Exit(tell(result, resolution, as_json=as_json, require_correct=require_correct))


def resolved(options: RunOptions, built: str | None, module: str | None) -> Resolution:
    """What will be run. `built` and `module`: --from and --module. Raises `UsageError`."""
    from agent.resolution import resolve
    from agent.written_problem import from_file, resolve_written

    if built is not None:
        return resolve_written(from_file(built, module or ""), options)
    if module is not None:
        raise UsageError("--module names a part of the model of --from FILE:FUNCTION; add that")
    return resolve(options)


if __name__ == "__main__":
    sys.exit(serve(command, "python -m agent.run"))
