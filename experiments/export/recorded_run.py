"""A run as the exports read it: rows of `load_runs` beside records, texts and second verdicts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agent.record.confirmation import Confirmation
from agent.record.progress import best_of
from agent.record.run_files import RunFiles, StoredCompletion
from agent.record.turn import TurnRecord
from evaluator.evaluation import Evaluation, Status
from experiments.runs import FILE, load_runs, run_folders

if TYPE_CHECKING:
    import pandas as pd


POLL_S = 2.0


@dataclass(frozen=True)
class RecordedTurn:
    row: dict[str, Any]
    record: TurnRecord
    second: Confirmation | None
    """The last second verdict on its kernel, even if another turn's identical one got it."""
    files: RunFiles

    @property
    def evaluation(self) -> Evaluation:
        """The verdict that counts: the second one, unless the kernel held and was not timed."""
        second = self.second
        if second is not None and (second.evaluation.timing or not second.holds):
            return second.evaluation
        return self.record.evaluation

    @property
    def is_struck(self) -> bool:
        return self.second is not None and not self.second.holds

    @property
    def reward(self) -> float:
        """Lower end of the interval of the speedup over eager; 0 for a kernel that is not
        correct, was struck, has a finding, or was not timed."""
        verdict = self.evaluation
        if verdict.status is not Status.CORRECT or verdict.findings or verdict.timing is None:
            return 0.0
        return verdict.timing.speedup_low

    @property
    def ended(self) -> datetime:
        """When it was recorded, to the second."""
        return datetime.fromisoformat(self.record.created)

    @property
    def began(self) -> datetime:
        """Its end less what its stages took. Time spent waiting is not recorded."""
        return self.ended - timedelta(seconds=self.row["seconds_wall"])

    def prompt(self) -> str | None:
        """The text that was sent; None where it was not kept."""
        try:
            return self.files.prompt(self.record.prompt)
        except FileNotFoundError:
            return None

    def answer(self) -> StoredCompletion | None:
        """The model's answer; None where it was not kept."""
        try:
            return self.files.completion(self.record.completion)
        except FileNotFoundError:
            return None


@dataclass(frozen=True)
class RecordedRun:
    name: str
    folder: Path
    table: pd.DataFrame
    turns: tuple[RecordedTurn, ...]

    @property
    def id(self) -> str:
        """16 hex digits, the same whenever it is exported, and for its compact form."""
        first = self.turns[0].record
        began = min(turn.record.created for turn in self.turns)
        policy = (first.strategy, first.feedback, first.model, first.run_seed)
        return digest(self.folder.resolve().name, began, *policy)

    @cached_property
    def samples(self) -> dict[tuple[str, int], list[RecordedTurn]]:
        found: dict[tuple[str, int], list[RecordedTurn]] = {}
        for turn in self.turns:
            found.setdefault((turn.record.problem, turn.record.sample), []).append(turn)
        return found


def recorded_runs(paths: Sequence[Path]) -> list[RecordedRun]:
    """The runs at `paths`, as `load_runs` finds them. Raises `UsageError`."""
    tables = load_runs(paths).groupby("path", sort=False)
    return [_recorded_run(Path(str(path)), table) for path, table in tables]


def outcome_of(turns: Sequence[RecordedTurn]) -> RecordedTurn:
    """The turn with the best kernel that was not struck; the last turn where there is none."""
    again = [turn for turn in turns if turn.second and turn.second.holds]
    best = best_of([turn.record for turn in turns if not turn.is_struck])
    last = max(turns, key=lambda turn: turn.record.call)
    return again[-1] if again else next((turn for turn in turns if turn.record is best), last)


def digest(*parts: object) -> str:
    """16 hex digits that stand for `parts`."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def has_ended(folder: Path) -> bool:
    """The last command of a run has ended: its result is not older than its last turn."""
    result, turns = folder / "result.json", folder / FILE
    return result.is_file() and result.stat().st_mtime >= turns.stat().st_mtime


def _recorded_run(folder: Path, table: pd.DataFrame) -> RecordedRun:
    files = RunFiles(folder)
    records: dict[tuple[str, int, int], TurnRecord] = {}
    for record in files.turns():
        records.setdefault((record.problem, record.sample, record.turn), record)
    seconds = {
        (problem, second.candidate): second
        for problem in table["problem"].unique()
        for second in files.confirmations(problem)
        if not (second.chooses and second.holds)
    }
    turns = []
    for row in table.to_dict("records"):
        record = records[row["problem"], row["sample"], row["turn"]]
        second = seconds.get((record.problem, record.candidate or ""))
        turns.append(RecordedTurn({str(k): v for k, v in row.items()}, record, second, files))
    return RecordedRun(str(table["run"].iloc[0]), folder, table, tuple(turns))


class Sink(Protocol):
    """Takes a run as it stands, again and again, and sends what is new."""

    def update(self, run: RecordedRun) -> None:
        """Send the turns that were not sent before."""
        ...

    def close(self) -> None:
        """Send what is known only at the end. Also called after an error or Ctrl-C."""
        ...


def send(paths: Sequence[Path], sink: Sink, *, follow: bool) -> None:
    """Send the runs at `paths`; with `follow`, until the last command of each has ended."""
    try:
        while True:
            # Asked before the turns are read: what comes in between is read the next time.
            ended = all(has_ended(folder) for path in paths for folder in run_folders(path))
            for run in recorded_runs(paths):
                sink.update(run)
            if ended or not follow:
                return
            time.sleep(POLL_S)
    finally:
        sink.close()
