"""The main job: opens model, judge, profiler, store and view, drives the run, and closes them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType

from agent.config.run_config import RunConfig, Strategy
from agent.fork import Fork
from agent.record.result import RunResult
from agent.record.store import open_store
from agent.resolution import Resolution
from agent.view.display import Mode, open_display
from evaluator.command.command_line import INTERRUPTED
from problems.errors import UsageError

FIRST = "interrupted: finishing what is in flight and saving; Ctrl-C again ends at once"


@contextmanager
def two_stage_interrupt(
    stop: threading.Event, say: Callable[[str], None], at_once: Callable[[], None]
) -> Iterator[None]:
    """Within the block, the first Ctrl-C sets `stop`; the second calls `at_once` and ends us.

    Outside the main thread signals can't be handled, and nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            # Everything that matters is on disk already: the next command goes on from there.
            at_once()
            os._exit(INTERRUPTED)
        stop.set()
        # Not here: the interrupted code may be in the middle of writing to the same stream.
        threading.Thread(target=say, args=(FIRST,)).start()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def refuse_session(config: RunConfig) -> None:
    """Raise `UsageError` where no model is asked."""
    if config.strategy is Strategy.AGENT:
        raise UsageError("--strategy agent is a session; kernel-refinery mcp opens it")


def check_spending(config: RunConfig) -> None:
    """Raise `UsageError` where the model can't be asked, or a limit in dollars can't be kept."""
    from agent.llm.check import check_model
    from agent.llm.pricing import most_it_can_cost

    check_model(config.model, config.model_args, temperature=config.temperature)
    if config.budget_usd is None or config.allow_unpriced:
        return
    if most_it_can_cost(config.model, 1, 1, 1, config.model_args) is None:
        raise UsageError(
            f"--budget-usd needs a known price and {config.model} has none; add --allow-unpriced"
            " to run without that limit being kept, or limit --budget-tokens instead"
        )


def check_judging(config: RunConfig) -> None:
    """Raise `UsageError` where kernels can't be judged as asked, as far as a look can tell. The
    machines of a cluster look for strict isolation themselves, at their first candidate."""
    if config.executor == "ray":
        from evaluator.executor.ray import refuse_unusable

        refuse_unusable(config.ray_address)
        return
    from agent.loop.drive import hardware_of
    from evaluator.walls.survey import insist

    if config.isolation == "strict":
        insist()
    hardware_of(config)


def run_job(resolution: Resolution, mode: Mode = "none", *, redo: bool = False) -> RunResult:
    """Do what `resolution` says, or what is left of it.

    Raises `UsageError` before anything is written where the model or the run directory can't be
    used, and `InfrastructureError` where this machine fails.
    """
    from agent.llm.client import make_client
    from agent.loop.deps import settings_of
    from agent.loop.drive import drive
    from agent.loop.judging import open_judging
    from agent.loop.problem_check import ProblemCheck

    config, stop = resolution.config, threading.Event()
    say: Callable[[str], None] = partial(print, file=sys.stderr)  # until there is a view
    refuse_session(config)
    check_judging(config)
    fork = Fork.parse(config.fork) if config.fork is not None else None
    if fork is not None:
        fork.check(config)
    with ExitStack() as stack:
        early = stack.enter_context(ThreadPoolExecutor(1))
        judging = stack.enter_context(open_judging(config, lambda text: say(text)))
        first, *_ = resolution.problems
        check = ProblemCheck(judging.executor, first, settings_of(config), config.rival)
        if not config.output.exists():
            # The judge starts and sets the problem up while LiteLLM is imported.
            judging.executor.prepare(config.workers, config.backend)
            early.submit(check.run)
        check_spending(config)
        client = make_client(config.model, config.model_args, run_dir=config.output, stop=stop)
        store = stack.enter_context(open_store(config, redo=redo))
        if fork is not None:
            fork.take_over(config, store)
        display = stack.enter_context(open_display(mode, config))
        say = display.say
        stack.enter_context(two_stage_interrupt(stop, say, at_once=display.close))
        for note in filter(None, (*resolution.notes, judging.note)):
            say(f"note: {note}")
        return drive(
            config,
            resolution.problems,
            client=client,
            executor=judging.executor,
            profiler=judging.profiler,
            place=judging.place,
            store=store,
            watch=display,
            stop=stop,
            checks={first.id: check},
        )
