"""`kernel-refinery mcp`: opens a session for a coding agent, which is the loop itself."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import ExitStack, suppress
from functools import partial
from importlib.util import find_spec
from typing import Annotated

from typer import Option

from agent.config.options import RunOptions, merge_layers
from agent.config.run_config import Strategy
from agent.run import Built, Part, Redo, Settings, resolved
from evaluator.command.command_line import serve
from evaluator.command.option import takes_options
from problems.errors import UsageError

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
    from agent.job import check_judging
    from agent.loop.drive import begin
    from agent.loop.environment import record_environment
    from agent.loop.judging import open_judging
    from agent.record.claim import check_same
    from agent.record.run_files import RunFiles
    from agent.record.store import open_store
    from agent.session.door import ask, is_open, open_door
    from agent.session.session import NOTHING_SENT, Session
    from agent.view.display import PlainLines

    if not commands:
        from agent.session.mcp_server import serve_http, serve_stdio

    given |= {"strategy": Strategy.AGENT, "model": f"agent/{agent}"}
    resolution = resolved(merge_layers(config or [], given), built, module)
    settings, stop = resolution.config, threading.Event()
    run, view = settings.output, PlainLines(settings, sys.stderr)
    if not (commands or redo) and http is None and is_open(run):
        check_same(RunFiles(run).config(), settings)
        view.say(f"passes calls on to the session that is open in {run}")
        serve_stdio(partial(ask, run))
        return
    check_judging(settings)
    with ExitStack() as stack:
        judging = stack.enter_context(open_judging(settings, view.say))
        store = stack.enter_context(open_store(settings, redo=redo))
        problems = begin(settings, resolution.problems, NOTHING_SENT, judging, store, view, stop)
        for note in filter(None, (*resolution.notes, judging.note)):
            view.say(f"note: {note}")
        judging.executor.prepare(1, settings.backend)
        record_environment(store, problems[0].device_name, settings.executor)
        session = Session(problems)
        stack.callback(stop.set)
        token = stack.enter_context(open_door(run, session.call))
        view.say(f"session: {run.resolve()}")
        if http is not None:
            serve_http(session.call, http, token)
        elif not commands:
            serve_stdio(session.call)
        else:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            with suppress(KeyboardInterrupt):
                threading.Event().wait()


if __name__ == "__main__":
    sys.exit(serve(command, "python -m agent.mcp"))
