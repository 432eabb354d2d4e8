"""How our commands begin and end: errors in one line on stderr, the exit code as the verdict."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable

import typer
from typer.main import get_command

from evaluator.errors import InfrastructureError
from problems.errors import UsageError

USAGE_ERROR = 2
AWAITING = 3
INTERRUPTED = 130

Line = tuple[str, str]
"""A style of rich's (empty: none) and a line of text."""


def serve(
    command: typer.Typer | Callable[..., None], program: str, arguments: list[str] | None = None
) -> int:
    """Run a function, or an app of several, as a command, and return its exit code.

    A user's mistake becomes one line, and so does a failure of the machine.
    """
    app = command if isinstance(command, typer.Typer) else one_command(command)
    words = sys.argv[1:] if arguments is None else arguments
    try:
        outcome = get_command(app).main(words, prog_name=program, standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except typer.TyperException as error:
        return _refuse(f"{error.format_message()} (--help lists the options)")
    except (UsageError, InfrastructureError) as error:
        return _refuse(str(error) or type(error).__name__)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception:  # noqa: BLE001  (our own bug: shown in full, never taken for a verdict)
        traceback.print_exc()
        return USAGE_ERROR
    return outcome if isinstance(outcome, int) else 0


def one_command(function: Callable[..., None]) -> typer.Typer:
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(function)
    return app


def print_lines(lines: Iterable[Line], *, stderr: bool = False) -> None:
    """Styled on a terminal, plain text elsewhere; long lines are never cut."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, stderr=stderr)
    for style, line in lines:
        console.print(Text(harmless(line), style), soft_wrap=True)


def harmless(text: str) -> str:
    """Text, some of which is a candidate's, without what would steer a terminal."""
    return re.sub(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]",
        lambda found: (
            chr(0x2400 + ord(found[0])) if found[0] < " " else "\N{REPLACEMENT CHARACTER}"
        ),
        text,
    )


def _refuse(text: str) -> int:
    # A name in it may hold what a terminal obeys.
    print("error:", "".join(filter(str.isprintable, " ".join(text.split()))), file=sys.stderr)
    return USAGE_ERROR
