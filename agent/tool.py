"""`kernel-refinery tool`: the tools of an open session as commands, for an agent with a shell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from agent.session.door import ask
from agent.session.tools import MOST_CHARACTERS, TOOLS
from evaluator.command.command_line import USAGE_ERROR, harmless, serve
from problems.errors import UsageError
from problems.plain_file import open_plain

_Tokens = Annotated[int | None, Option(metavar="N", help="Of evaluate: since the last one.")]
_HELP = "\n\n".join(f"{name}: {' '.join((t.__doc__ or '').split())}" for name, t in TOOLS.items())


def command(
    tool: Annotated[str, Argument(metavar="|".join(TOOLS))],
    session: Annotated[
        Path,
        Option(
            metavar="DIR",
            envvar="KERNEL_REFINERY_SESSION",
            help="Its run directory. [KERNEL_REFINERY_SESSION of the environment]",
        ),
    ],
    file: Annotated[
        Path | None, Argument(metavar="FILE", help="Of evaluate: defines ModelNew; -: stdin.")
    ] = None,
    problem: Annotated[
        str, Option(metavar="ID", help="May be left out where the session has one problem.")
    ] = "",
    turn: Annotated[
        int | None, Option(metavar="N", help="Of profile: whose kernel. [the one to refine]")
    ] = None,
    prompt_tokens: _Tokens = None,
    completion_tokens: _Tokens = None,
) -> None:
    given = {"turn": turn, "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    asked: dict[str, object] = {key: value for key, value in given.items() if value is not None}
    asked |= {"problem": problem} if problem else {}
    if file is not None:
        try:
            most = 4 * MOST_CHARACTERS + 1
            with (
                sys.stdin.buffer if str(file) == "-" else open_plain(file, most, follows=True) as f
            ):
                asked["source"] = f.read(most).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"can't read {file}: {error}") from None
    answer = ask(session, tool, asked, lambda t: typer.echo(harmless(t), err=True), "commands")
    typer.echo(harmless(answer.text))  # some of it is a candidate's
    raise typer.Exit({"done": 0, "refused": 1, "failed": USAGE_ERROR}[answer.kind])


command.__doc__ = f"""Use a tool of the session that kernel-refinery mcp has opened.

{_HELP}

The answer is on stdout, progress on stderr. Exit codes: 0 done; 1 what was asked for can't be, and
nothing was spent; 2 wrong usage, or a failure of the machine.
"""

if __name__ == "__main__":
    sys.exit(serve(command, "python -m agent.tool"))
