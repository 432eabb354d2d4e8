"""One trajectory in depth: what its turns' profiles say, and what became of the advice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent.record.archive import unpacked
from agent.record.run_files import RunFiles
from agent.record.turn import TurnRecord
from evaluator.rival import Rival
from problems.errors import UsageError
from tools.advice.score import time_change
from tools.advice.units import unit

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Trajectory:
    folder: Path
    problem: str
    records: tuple[TurnRecord, ...]
    """In the order of calls; at least one."""
    rival: Rival
    """PyTorch on the same device; empty where the run did not measure it."""

    @classmethod
    def read(cls, folder: Path, problem: str) -> Trajectory:
        """From a run directory, or an archive of it. Raises `UsageError` without such a turn."""
        folder = unpacked(folder)
        files = RunFiles(folder)
        records = [record for record in files.turns() if record.problem == problem]
        if not records:
            raise UsageError(f"{folder} has no turn of {problem}; name a problem of that run")
        ordered = tuple(sorted(records, key=lambda record: record.call))
        return cls(folder, problem, ordered, files.rival(problem) or Rival())

    def turns(self) -> pd.DataFrame:
        """A row a turn: its speedup, the finding on the kernel before, what its own kernel says."""
        import pandas as pd

        rows, finding = [], ""
        for record in self.records:
            timing, profile = record.evaluation.timing, record.profile
            speedup = timing and (timing.speedup, timing.speedup_low, timing.speedup_high)
            rows.append(
                {
                    "turn": record.turn,
                    "status": record.evaluation.status.value,
                    "speedup": "{:.2f}x [{:.2f}, {:.2f}]".format(*speedup) if speedup else "",
                    "found before": finding if record.turn else "",
                    "what changed": record.plan,
                }
            )
            finding = record.evaluation.message if profile is None else profile.headline
        return pd.DataFrame.from_records(rows)

    def figures(self, *names: str) -> pd.DataFrame:
        """A row a figure of the profiles (a key of `Profile.figures`), a column a turn; empty
        where it is not known."""
        import pandas as pd

        columns = {
            f"turn {record.turn}": [
                "" if value is None else unit(name).format(value)
                for name in names
                for value in [record.profile.figures.get(name) if record.profile else None]
            ]
            for record in self.records
        }
        return pd.DataFrame(columns, index=[unit(name).words for name in names])

    def advice(self) -> pd.DataFrame:
        """A row a piece of advice that a turn's prompt gave and that could be scored: what it
        wanted to move, and what the turn's own profile and time say."""
        import pandas as pd

        return pd.DataFrame.from_records(list(self._advice()))

    def _advice(self) -> Iterator[dict[str, object]]:
        for record in self.records:
            for each in record.advice_scores:
                shown_in, change = unit(each.figure), time_change(each)
                yield {
                    "turn": record.turn,
                    "rule": each.rule,
                    "to move": f"{shown_in.words} {each.direction}",
                    "before": shown_in.format(each.before),
                    "after": "" if each.after is None else shown_in.format(each.after),
                    "moved": "not known" if each.moved is None else "yes" if each.moved else "no",
                    "predicted time": f"{-100 * each.predicted_gain:+.0f} %",
                    "time": "" if change is None else f"{100 * change:+.0f} %",
                }
