"""`kernel-refinery mcp`: opens a session for a coding agent, which is the loop itself."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

from typer import Option

from agent.config.options import RunOptions, merge_layers
from agent.config.run_config import Strategy
from agent.run import Built, Part, Redo, Settings, resolved
from evaluator.command.command_line import serve
from evaluator.command.option import takes_options
from problems.errors import UsageError

if TYPE_CHECKING:
    from agent.resolution import Resolution
    from agent.session.session import Session

_OF_A_MODEL = (
    *("strategy", "model", "model_args", "temperature", "fork", "drafts", "refine_best", "workers"),
    *("budget_usd", "budget_tokens", "allow_unpriced"),
)
"""Options of `kernel-refinery run` that a session does not take."""


@takes_options(RunOptions, without=_OF_A_MODEL)
def command(
    given: dict[str, object],
    agent: Annotated[
        str, Option("--agent", metavar="NAME", help="What the record calls the agent.")
    ] = "unnamed",
    http: Annotated[
        int | None,
        Option(
            "--http",
            metavar="PORT",
            min=0,
            max=65535,
            help="Speak HTTP on loopback, and not on stdio; 0: any port that is free. Prints the "
            "address and the token.",
        ),
    ] = None,
    commands: Annotated[
        bool, Option("--commands", help="Only kernel-refinery tool speaks to it, until Ctrl-C.")
    ] = False,
    config: Settings = None,
    built: Built = None,
    module: Part = None,
    redo: Redo = False,
) -> None:
    """Open a session: a coding agent reads problems, has its kernels judged and learns from the
    answers, within budgets that it cannot change.

    It speaks the Model Context Protocol on stdio. Beside that, kernel-refinery tool has the same
    tools as commands. A session is a run: kernel-refinery show, compare and report read it, and
    the same command again goes on with it. Where another process has the session open, this one
    passes calls on to it.
    """
    if not commands and find_spec("mcp") is None:
        raise UsageError("kernel-refinery mcp needs the SDK: pip install 'kernel-refinery[mcp]'")
    if commands and http is not None:
        raise UsageError("--commands and --http exclude each other; choose one")
    from agent.record.claim import check_same
    from agent.record.run_files import RunFiles
    from agent.session.door import ask, is_open, open_door

    if not commands:
        from agent.session.mcp_server import serve_http, serve_stdio

    given |= {"strategy": Strategy.AGENT, "model": f"agent/{agent}"}
    resolution = resolved(merge_layers(config or [], given), built, module)
    run = resolution.config.output
    if not (commands or redo) and http is None and is_open(run):
        check_same(RunFiles(run).config(), resolution.config)
        print(f"passes calls on to the session that is open in {run}", file=sys.stderr)
        serve_stdio(partial(ask, run))
        return
    with open_session(resolution, redo=redo) as session, open_door(run, session.call) as token:
        print(f"session: {run.resolve()}", file=sys.stderr, flush=True)
        if http is not None:
            serve_http(session.call, http, token)
        elif not commands:
            serve_stdio(session.call)
        else:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            with suppress(KeyboardInterrupt):
                threading.Event().wait()


@contextmanager
def open_session(resolution: Resolution, *, redo: bool = False) -> Iterator[Session]:
    """The session in `config.output`, which goes on where an earlier command ended.

    Raises `UsageError` where it can't be opened, or another process has it.
    """
    from agent.job import check_judging
    from agent.loop.drive import begin
    from agent.loop.environment import record_environment
    from agent.loop.judging import open_judging
    from agent.record.store import open_store
    from agent.session.session import NOTHING_SENT, Session
    from agent.view.display import PlainLines

    config, stop = resolution.config, threading.Event()
    view = PlainLines(config, sys.stderr)
    check_judging(config)
    with (
        open_judging(config, view.say) as judging,
        open_store(config, redo=redo) as store,
    ):
        problems = begin(config, resolution.problems, NOTHING_SENT, judging, store, view, stop)
        for note in filter(None, (*resolution.notes, judging.note)):
            view.say(f"note: {note}")
        judging.executor.prepare(1, config.backend)
        record_environment(store, problems[0].device_name, config.executor)
        try:
            yield Session(problems)
        finally:
            stop.set()


if __name__ == "__main__":
    sys.exit(serve(command, "python -m agent.mcp"))
