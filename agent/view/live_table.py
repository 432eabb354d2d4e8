"""The live table of a run: one row a problem, drawn by rich at most four times a second."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from agent.config.run_config import RunConfig
from agent.record import figures
from agent.record.events import (
    Display,
    Evaluated,
    Event,
    JudgedAgain,
    JudgingAgain,
    ModelAnswered,
    ProblemFinished,
    ProblemStarted,
    Profiled,
    TurnRecorded,
    TurnStarted,
    Waiting,
)
from agent.record.result import Spent, Stop
from agent.record.turn import TurnRecord
from evaluator.evaluation import Status, Verdict

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

_COLUMNS: tuple[tuple[str, int, Literal["left", "right"]], ...] = (
    ("turn", 5, "right"),
    ("last", 13, "left"),
    ("best over eager", 18, "left"),
    ("bound", 5, "right"),
    ("cost", 7, "right"),
    ("time", 7, "right"),
    ("now", 12, "left"),
)
"""What follows the problem's name, with widths that hold every value: a row never jumps."""
_LEAST_NAME = 18
"""Of the problem's name; where the terminal is too narrow, `last` is left out."""
_VERDICT_STYLES = {Verdict.FASTER: "green", Verdict.SLOWER: "red"}


@dataclass
class ProblemRow:
    problem: str
    turn: int = 0
    last: Status | None = None
    best: TurnRecord | None = None
    spent: Spent = field(default_factory=Spent)
    """On recorded turns, as in the summary."""
    phase: str = "queued"
    since: float = 0.0
    started: float | None = None
    ended: float | None = None
    stop: Stop | None = None

    def enter(self, phase: str, now: float) -> None:
        self.phase, self.since = phase, now


@dataclass
class LiveTable(Display):
    """One row a problem. `notice` comes from the run's threads, drawing from rich's own."""

    config: RunConfig
    console: Console
    live: Live | None = None
    rows: dict[str, ProblemRow] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = {problem: ProblemRow(problem) for problem in self.config.problems}

    def say(self, text: str) -> None:
        """One line above the table, as it is: a path in it must survive to be copied."""
        self.console.print(text, markup=False, soft_wrap=True)

    def close(self) -> None:
        if self.live is not None:
            self.live.stop()

    def notice(self, event: Event) -> None:
        row = self.rows.setdefault(event.problem, ProblemRow(event.problem))
        now = time.monotonic()
        match event:
            case ProblemStarted():
                row.turn, row.best, row.spent = event.recorded, event.best, event.spent
                row.started = now
                row.enter("start", now)
            case TurnStarted():
                # Samples may be drafted side by side: the furthest one counts.
                row.turn = max(row.turn, event.call + 1)
                row.enter("model", now)
            case ModelAnswered():
                row.enter("judge", now)
            case Evaluated():
                row.last = event.evaluation.status
                correct = row.last is Status.CORRECT
                profiles = correct and self.config.shown_feedback.needs_profile
                row.enter("profile" if profiles else "record", now)
            case Waiting():
                row.enter("wait", now)
                self.say(f"{event.problem}: {event.reason}")
            case Profiled() if event.error:
                self.say(f"{event.problem}: no profile: {event.error}")
            case TurnRecorded():
                row.spent = event.spent
                row.last = event.record.evaluation.status
                if event.is_best:
                    row.best = event.record
            case JudgingAgain():
                row.enter("confirm", now)
            case JudgedAgain() if not event.confirmation.holds:
                self.say(f"{event.problem}: {figures.judged_again(event.confirmation)}")
            case ProblemFinished():
                row.best, row.turn = event.result.best, event.result.turns
                if row.best is not None:
                    row.best = row.best.model_copy(update={"evaluation": event.result.verdict})
                row.spent, row.stop, row.ended = event.result.spent, event.result.stop, now
                if event.result.last is not None:
                    row.last = event.result.last.evaluation.status
                if event.result.error:
                    self.say(f"{event.problem}: {event.result.error}")
            case _:
                pass

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        now, config = time.monotonic(), self.config
        heading = figures.heading(config.output, config, config.device, config.budget)
        room = max(self.console.height - 7, 3)
        shown = _most_interesting(list(self.rows.values()), room)
        lines: list[RenderableType] = [
            Text(heading, style="bold", overflow="ellipsis", no_wrap=True),
            self._table(shown, now),
        ]
        if self.config.model == figures.TUNER:
            lines.insert(1, Text(figures.TUNER_NOTE, style="dim"))
        hidden = len(self.rows) - len(shown)
        done = sum(row.stop is not None for row in self.rows.values())
        if hidden:
            lines.append(Text(f"and {hidden} more problems; {done} of all done", style="dim"))
        return Group(*lines)

    def _table(self, rows: Sequence[ProblemRow], now: float) -> Table:
        from rich.table import Table
        from rich.text import Text

        gap = 2 if self.console.width >= 110 else 1
        table = Table(box=None, padding=(0, gap, 0, 0), header_style="dim", pad_edge=False)
        whole = sum(width + gap for _, width, _ in _COLUMNS) + _LEAST_NAME
        left_out = "last" if whole > self.console.width else ""
        columns = [column for column in _COLUMNS if column[0] != left_out]
        room = self.console.width - sum(width + gap for _, width, _ in columns) - gap
        table.add_column("problem", no_wrap=True, overflow="ellipsis", max_width=max(room, 12))
        for name, width, justify in columns:
            table.add_column(name, no_wrap=True, width=width, justify=justify)
        for row in rows:
            cells = self._cells(row, now)
            table.add_row(Text(row.problem), *(cells[name] for name, _, _ in columns))
        return table

    def _cells(self, row: ProblemRow, now: float) -> dict[str, Text]:
        from rich.text import Text

        timing = row.best.evaluation.timing if row.best else None
        best = Text("none yet" if row.turn else "", style="dim")
        if timing is not None:
            best = Text(figures.speedup(timing), style=_VERDICT_STYLES.get(timing.verdict, ""))
        last = Text(row.last or "", style="" if row.last is Status.CORRECT else "yellow")
        if row.stop is not None:
            ended_well = row.stop is not Stop.ERROR and not row.stop.is_passing
            doing = Text("done" if ended_well else row.stop, style="green" if ended_well else "red")
        elif row.started is None:
            doing = Text(row.phase, style="dim")
        else:
            doing = Text(f"{row.phase} {now - row.since:.0f}s", style="cyan")
        return {
            "turn": Text(f"{row.turn}/{self.config.budget}"),
            "last": last,
            "best over eager": best,
            "bound": Text(figures.percent(timing.sol_fraction) if timing else ""),
            "cost": Text(figures.cost(row.spent.cost_usd) if row.turn else ""),
            "time": Text(figures.duration(row.spent.wall_seconds) if row.turn else ""),
            "now": doing,
        }


def _most_interesting(rows: list[ProblemRow], room: int) -> list[ProblemRow]:
    """All rows where they fit; else those at work first, then the latest done, then the queue."""
    if len(rows) <= room:
        return rows
    working = [row for row in rows if row.started is not None and row.stop is None]
    done = sorted((row for row in rows if row.ended is not None), key=lambda row: -(row.ended or 0))
    queued = [row for row in rows if row.started is None]
    return [*working, *done, *queued][:room]
