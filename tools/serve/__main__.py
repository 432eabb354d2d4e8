"""`python -m tools.serve`: verdicts over HTTP, for programs on this machine."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import platform
import secrets
import signal
import sys
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from evaluator.check import request_for, settings_for
from evaluator.command.command_line import INTERRUPTED, serve
from evaluator.command.option import takes_options
from evaluator.settings import JudgeOptions
from problems.errors import UnknownProblemError, UsageError

if TYPE_CHECKING:
    from problems.problem import Problem
    from tools.serve.reward_server import RewardServer

_LEAST = 16
"""Characters of a token, so that it cannot be guessed."""


@takes_options(JudgeOptions)
def command(
    given: dict[str, object],
    suite: Annotated[
        Path | None,
        typer.Option(help="The problems: as --suite of kernel-refinery check. [our own]"),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N,M or all.")] = "auto",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 0,
    token_file: Annotated[
        Path | None,
        typer.Option(help="Holds the token that clients send. [a fresh one, printed once]"),
    ] = None,
    queue: Annotated[int, typer.Option(min=1, help="So many candidates may wait.")] = 256,
    body_mib: Annotated[int, typer.Option(min=1, max=128, help="Largest body of a request.")] = 16,
    profile: Annotated[
        bool, typer.Option("--profile", help="Profile each correct kernel, with advice.")
    ] = False,
    accept_problems: Annotated[
        bool, typer.Option("--accept-problems", help="Clients may send problems of their own.")
    ] = False,
    keep_problems: Annotated[
        int, typer.Option(min=1, max=64, help="So many of these stay set up.")
    ] = 4,
    problem_seconds: Annotated[
        float, typer.Option(min=1, help="Longest time for a candidate of these, set-up included.")
    ] = 300.0,
    grace: Annotated[
        float,
        typer.Option(min=0, help="Seconds to finish what is under way after a signal to stop."),
    ] = 60.0,
) -> None:
    """Judge candidates that programs on this machine post, with the same options for all of them.

    Prints its address, and a fresh token, on stdout. SIGINT or SIGTERM: it takes nothing more,
    finishes what is under way, and ends; a second signal ends it at once. Exit code 0: it ended in
    good order; 1: --grace was too short; 2: wrong usage.
    """
    if importlib.util.find_spec("aiohttp") is None:
        raise UsageError("kernel-refinery serve needs aiohttp: pip install aiohttp")
    from evaluator.executor.local import LocalExecutor
    from evaluator.hardware.device_choice import resolve_devices
    from evaluator.hardware.devices import describe
    from tools.serve.batch import Job
    from tools.serve.dispatch import Dispatch
    from tools.serve.reward_server import RewardServer
    from tools.serve.sent_problems import SentProblems
    from tools.serve.verdict import verdict

    devices = resolve_devices(device)
    settings = settings_for(given, devices)
    find = problem_finder(suite)
    token = secrets.token_urlsafe(32) if token_file is None else read_token(token_file)

    sent = None
    if accept_problems:
        if settings.isolation == "strict":
            raise UsageError(
                "--accept-problems: kernels for clients' problems lack some walls of strict"
                " isolation; leave out one of the two options"
            )
        sent = SentProblems(settings, profiles=profile, most=keep_problems, limit_s=problem_seconds)

    def job(client: str, name: str, source: str, own: str | None) -> Job:
        if own is None:
            request = request_for(source, find(name), settings)
            return Job(name, lambda: verdict(executor, request, profiles=profile))
        if sent is None:
            raise UsageError("this server takes no problems; start it with --accept-problems")
        return Job(f"a client's {name}", lambda: sent.verdict(client, name, own, source))

    def announce(address: str) -> None:
        print(f"address: {address}")
        if token_file is None:
            print(f"token: {token}")
        sys.stdout.flush()

    def leave(code: int) -> NoReturn:
        # Threads still wait for judges, which end with this process, and all they started.
        if sent is not None:
            sent.scratch.cleanup()
        os._exit(code)

    versions = {name: importlib.metadata.version(name) for name in ("kernel-refinery", "torch")}
    about = {
        "devices": devices,
        "device_name": describe(devices[0]).name,
        "versions": versions | {"python": platform.python_version()},
    }
    with LocalExecutor(*devices) as executor, nullcontext() if sent is None else closing(sent):
        executor.prepare(len(devices))
        server = RewardServer(
            Dispatch(width=executor.width, room=queue),
            token,
            job,
            about,
            body_mib * 2**20,
        )
        in_good_order = asyncio.run(_until_signalled(server, port, grace, announce, leave))
        if not in_good_order:
            print("--grace is over: what is under way is given up", file=sys.stderr, flush=True)
            leave(1)


def read_token(path: Path) -> str:
    """The token that a file holds. Raises `UsageError` where it holds none that is good."""
    try:
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file: can't read {path} ({error})") from None
    if len(text) < _LEAST or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError(
            f"--token-file: {path} must hold one word of at least {_LEAST} ASCII characters"
        )
    return text


def problem_finder(suite: Path | None) -> Callable[[str], Problem]:
    """Finds problems by name, but no files of this machine. Safe for several threads.

    What was read once stays as it was. Raises `UsageError` for a suite that can't be found, and the
    finder for a name that the suite does not have, or has twice.
    """
    from problems.loader import load_problem

    kept: dict[str, Problem] = {}

    def find(name: str) -> Problem:
        # As the loader reads names: however clients spell one, it is kept once.
        key = name.removesuffix(".py").lower()
        if key not in kept:
            problem = load_problem(name, suite, files=False)
            kept[key] = kept.setdefault(problem.id.lower(), problem)
        return kept[key]

    with suppress(UnknownProblemError):
        find("")  # a suite that is there says that it has no such
    return find


async def _until_signalled(
    server: RewardServer,
    port: int,
    grace_s: float,
    announce: Callable[[str], None],
    leave: Callable[[int], NoReturn],
) -> bool:
    stop = asyncio.Event()

    def stop_or_end() -> None:
        if stop.is_set():
            leave(INTERRUPTED)
        stop.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop_or_end)
    return await server.run(port, stop, grace_s, announce)


if __name__ == "__main__":
    sys.exit(serve(command, "python -m tools.serve"))
