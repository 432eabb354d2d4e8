"""The live view of a run: a table on a terminal, a line for each turn elsewhere, or nothing.

Everything goes to stderr: stdout belongs to `--json`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TextIO, cast, get_args

from agent.config.run_config import RunConfig
from agent.record import figures
from agent.record.events import (
    Display,
    Event,
    JudgedAgain,
    ProblemFinished,
    ProblemStarted,
    Profiled,
    TurnRecorded,
    Waiting,
)
from evaluator.command.command_line import harmless
from problems.errors import UsageError

Mode = Literal["rich", "plain", "none"]
REFRESH_HZ = 4


@contextmanager
def open_display(mode: Mode, config: RunConfig) -> Iterator[Display]:
    if mode == "rich":
        from rich.console import Console
        from rich.live import Live

        from agent.view.live_table import LiveTable

        console = Console(stderr=True, highlight=False)
        table = LiveTable(config, console)
        with Live(table, console=console, refresh_per_second=REFRESH_HZ) as live:
            table.live = live
            yield table
    elif mode == "plain":
        yield PlainLines(config, sys.stderr)
    else:
        yield Display()


class PlainLines(Display):
    """One line for each finished turn: for files, pipes and CI."""

    def __init__(self, config: RunConfig, stream: TextIO) -> None:
        self._budget = config.budget
        self._stream = stream
        self._width = max((len(problem) for problem in config.problems), default=0)

    def say(self, text: str) -> None:
        print(harmless(text), file=self._stream, flush=True)

    def notice(self, event: Event) -> None:
        match event:
            case ProblemStarted(recorded=recorded) if recorded:
                self._line(event, f"goes on after {recorded} recorded turns")
            case Waiting(reason=reason):
                self._line(event, f"waiting: {reason}")
            case Profiled(error=error) if error:
                self._line(event, f"no profile: {error}")
            case TurnRecorded():
                self._line(event, self._turn(event))
            case JudgedAgain(confirmation=confirmation):
                self._line(event, f"{confirmation.what}: {figures.judged_again(confirmation)}")
            case ProblemFinished(result=result) if result.error:
                self._line(event, f"ended: {result.error}")
            case _:
                pass

    def _line(self, event: Event, text: str) -> None:
        self.say(f"{event.problem:<{self._width}}  {text}")

    def _turn(self, event: TurnRecorded) -> str:
        record = event.record
        timing = record.evaluation.timing
        parts = [figures.outcome(record.evaluation)]
        if timing is not None:
            parts.append(figures.latency(timing.latency_us))
            if timing.sol_fraction is not None:
                parts.append(f"{figures.percent(timing.sol_fraction)} of the bound")
        parts.append(figures.cost(event.spent.cost_usd))
        best = "  (best so far)" if event.is_best else ""
        count = f"{record.call + 1}/{self._budget}"
        place = figures.place(record)
        return f"{count:<6} {place:<10} {record.evaluation.status:<13} {', '.join(parts)}{best}"


def view_mode(asked: str | None) -> Mode:
    """What `--display` names; by default a table on a terminal and lines elsewhere."""
    mode = asked or ("rich" if sys.stderr.isatty() else "plain")
    if mode not in get_args(Mode):
        raise UsageError(f"--display: {mode!r} is not one of {', '.join(get_args(Mode))}")
    return cast(Mode, mode)
