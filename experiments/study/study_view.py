"""What a person sees of a study while it runs: a line a problem, on stderr."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field

from agent.record import figures
from agent.record.events import Display, Event, Profiled, TurnRecorded, Waiting
from agent.record.result import ProblemResult
from experiments.study.cell import Cell


@dataclass
class StudyView:
    """Counts what happens in all cells. Safe to call from several threads."""

    problems: int
    """Of all cells together."""
    began: float = field(default_factory=time.monotonic)
    _ended: int = 0
    _timed: int = 0
    """Problems that ended in this command, with turns of theirs made in it."""
    _made: set[tuple[str, str]] = field(default_factory=set)
    """Cells and problems with turns made in this command."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def of(self, cell: Cell) -> CellWatch:
        return CellWatch(self, cell.name)

    def recorded(self, cell: str, problem: str) -> None:
        with self._lock:
            self._made.add((cell, problem))

    def ended(self, cell: Cell, result: ProblemResult) -> None:
        """A problem of a cell has got all its turns, or has failed, or goes on later."""
        if result.stop.is_passing:
            return
        with self._lock:
            self._ended += 1
            self._timed += (cell.name, result.problem) in self._made
            count = f"{self._ended}/{self.problems}"
            time_left = self._time_left()
        timing = result.verdict.timing if result.verdict else None
        outcome = result.error or (f"{timing.speedup:.2f}x" if timing else "no speedup")
        self.say(f"{count}  {cell.name}  {result.problem}  {outcome}  {time_left}".rstrip())

    def _time_left(self) -> str:
        """`about 12 min left`, from the pace of this command so far."""
        left = self.problems - self._ended
        if not self._timed or not left:
            return ""
        pace = (time.monotonic() - self.began) / self._timed
        return f"about {figures.duration(pace * left)} left"


@dataclass(frozen=True)
class CellWatch(Display):
    view: StudyView
    cell: str

    def notice(self, event: Event) -> None:
        """Count turns; say what keeps them waiting."""
        match event:
            case TurnRecorded():
                self.view.recorded(self.cell, event.problem)
            case Waiting(reason=reason):
                self.view.say(f"{self.cell}  {event.problem}  waiting: {reason}")
            case Profiled(error=error) if error:
                self.view.say(f"{self.cell}  {event.problem}  no profile: {error}")
            case _:
                pass
