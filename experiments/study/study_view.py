"""The live view of a study: a row a cell on a terminal, a line a problem elsewhere, or nothing."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.record import figures
from agent.record.events import Event, Profiled, TurnRecorded, Waiting
from agent.record.result import ProblemResult, Stop
from agent.record.store import RunStore
from agent.view.display import REFRESH_HZ, Mode
from experiments.study.cell import Cell

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live


@dataclass
class CellRow:
    problems: int
    turns: int
    cost_usd: float
    done: int = 0
    correct: int = 0
    failed: int = 0
    now: str = ""
    timed: int = 0
    """Problems that ended in this command, with turns of theirs made in it."""
    made: set[str] = field(default_factory=set)
    """Problems with turns made in this command."""


@dataclass
class StudyView:
    """Counts what happens in all cells. Safe to call from several threads."""

    rows: dict[str, CellRow]
    mode: Mode
    console: Console | None = None
    live: Live | None = None
    began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, text: str) -> None:
        if self.console is not None:
            self.console.print(text, markup=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Give the terminal back; more than once does no harm."""
        if self.live is not None:
            self.live.stop()

    def of(self, cell: Cell) -> CellWatch:
        return CellWatch(self, cell.name)

    def recorded(self, cell: str, event: TurnRecorded) -> None:
        with self._lock:
            row = self.rows[cell]
            row.turns += 1
            row.cost_usd += event.record.usage.cost_usd or 0.0
            row.now = event.problem
            row.made.add(event.problem)

    def ended(self, cell: Cell, result: ProblemResult) -> None:
        """A problem of a cell has got all its turns, or has failed, or was interrupted."""
        with self._lock:
            row = self.rows[cell.name]
            row.now = ""
            if result.stop is Stop.INTERRUPTED:
                return
            row.failed += result.stop is Stop.ERROR
            row.done += result.stop is not Stop.ERROR
            row.correct += result.best is not None
            row.timed += result.problem in row.made
            done = sum(each.done + each.failed for each in self.rows.values())
            of = sum(each.problems for each in self.rows.values())
        if self.mode == "plain":
            timing = result.verdict.timing if result.verdict else None
            outcome = result.error or (f"{timing.speedup:.2f}x" if timing else "no speedup")
            self.say(f"{done}/{of}  {cell.name}  {result.problem}  {outcome}  {self.time_left()}")

    def time_left(self) -> str:
        """`about 12 min left`, from the pace of this command so far."""
        timed = sum(row.timed for row in self.rows.values())
        left = sum(row.problems - row.done - row.failed for row in self.rows.values())
        if not timed or not left:
            return ""
        return f"about {figures.duration((time.monotonic() - self.began) * left / timed)} left"

    def __rich__(self) -> RenderableType:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold", caption_justify="left")
        for name in ("cell", "problems", "correct", "failed", "turns", "spent", "now"):
            table.add_column(name, justify="left" if name in ("cell", "now") else "right")
        with self._lock:
            for name, row in self.rows.items():
                table.add_row(
                    name,
                    f"{row.done}/{row.problems}",
                    str(row.correct),
                    str(row.failed or ""),
                    str(row.turns),
                    figures.cost(row.cost_usd),
                    row.now,
                )
            table.caption = self.time_left()
        return table


@dataclass(frozen=True)
class CellWatch:
    view: StudyView
    cell: str

    def notice(self, event: Event) -> None:
        """Count turns; say what keeps them waiting."""
        match event:
            case TurnRecorded():
                self.view.recorded(self.cell, event)
            case Waiting(reason=reason):
                self.view.say(f"{self.cell}  {event.problem}  waiting: {reason}")
            case Profiled(error=error) if error:
                self.view.say(f"{self.cell}  {event.problem}  no profile: {error}")
            case _:
                pass


@contextmanager
def open_view(
    mode: Mode, cells: Sequence[Cell], stores: Mapping[str, RunStore]
) -> Iterator[StudyView]:
    """The view that `mode` names, open until the end of the block."""
    view = StudyView({cell.name: _row(cell, stores[cell.name]) for cell in cells}, mode)
    if mode != "rich":
        yield view
        return
    from rich.console import Console
    from rich.live import Live

    view.console = Console(stderr=True, highlight=False)
    with Live(view, console=view.console, refresh_per_second=REFRESH_HZ) as live:
        view.live = live
        yield view


def _row(cell: Cell, store: RunStore) -> CellRow:
    known = [store.log.progress(problem.id) for problem in cell.resolution.problems]
    return CellRow(
        problems=len(known),
        turns=sum(each.turns for each in known),
        cost_usd=sum(each.spent.priced_usd for each in known),
    )
