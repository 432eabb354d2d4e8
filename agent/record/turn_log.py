"""`turns.jsonl`: what has happened, one record a turn, append-only. The one truth of a run.

Only a profile that an agent asks for later is added to a record that is there already.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Set
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from agent.record.durable import append_durably, write_durably
from agent.record.progress import Progress
from agent.record.turn import TurnRecord
from problems.errors import UsageError

FILE = "turns.jsonl"


class TurnKey(NamedTuple):
    problem: str
    sample: int
    turn: int

    def __str__(self) -> str:
        return f"{self.problem}.{self.sample}.{self.turn}"


def key_of(record: TurnRecord) -> TurnKey:
    return TurnKey(record.problem, record.sample, record.turn)


def read_turns(run: Path) -> Iterator[TurnRecord]:
    """The records of the run directory `run`, in the order written, without a lock or repairs.

    A last line that a kill tore is passed over. Raises `UsageError` for any other bad line.
    """
    for _, _, record in _read(run / FILE):
        yield record


def has_turns(run: Path) -> bool:
    """Whether it holds the records of turns, or will: a run directory, or a compact run."""
    return (run / FILE).is_file()


def _read(path: Path) -> Iterator[tuple[int, bytes, TurnRecord]]:
    """Each line with the offset at which it begins."""
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield offset, line, TurnRecord.model_validate_json(line)
            except ValidationError as error:
                if not line.endswith(b"\n"):
                    return
                first = error.errors()[0]
                where = ".".join(str(part) for part in first["loc"])
                raise UsageError(
                    f"{path} line {number} is not a turn of this version ({where}: {first['msg']});"
                    " remove the line, or start over with --redo"
                ) from error
            offset += len(line)


class TurnLog:
    """The writer's view of `turns.jsonl`. Holds where each record lies and what each problem's come
    to; the records themselves are read when asked for."""

    def __init__(self, run: Path) -> None:
        """Read what is there and repair a torn last line. Raises `UsageError` for a bad one."""
        self._path = run / FILE
        self._lock = threading.Lock()
        self._offsets: dict[str, dict[tuple[int, int], int]] = {}
        self._progress: dict[str, Progress] = {}
        end, is_whole = 0, True
        for offset, line, record in _read(self._path):
            if key_of(record) not in self:
                self._note(record, offset)
            end, is_whole = offset + len(line), line.endswith(b"\n")
        if self._path.exists():
            with self._path.open("r+b") as file:
                file.truncate(end)
                file.seek(end)
                file.write(b"" if is_whole else b"\n")

    def _note(self, record: TurnRecord, offset: int) -> None:
        self._offsets.setdefault(record.problem, {})[record.sample, record.turn] = offset
        self._progress[record.problem] = self.progress(record.problem).after(record)

    def add_profile(self, profiled: TurnRecord) -> None:
        """Put the record of a turn with its profile in the place of the one without."""
        with self._lock:
            lines = {key_of(record): line.decode() for _, line, record in _read(self._path)}
            lines[key_of(profiled)] = f"{profiled.model_dump_json()}\n"
            write_durably(self._path, "".join(lines.values()))
            there = TurnLog(self._path.parent)
            self._offsets, self._progress = there._offsets, there._progress

    def append(self, record: TurnRecord) -> bool:
        """Write `record` unless its key is there already; says whether it was written."""
        line = record.model_dump_json()
        with self._lock:
            if key_of(record) in self:
                return False
            self._note(record, append_durably(self._path, line))
            return True

    def __contains__(self, key: TurnKey) -> bool:
        return (key.sample, key.turn) in self._offsets.get(key.problem, ())

    def places(self, problem: str) -> Set[tuple[int, int]]:
        return self._offsets.get(problem, {}).keys()

    def progress(self, problem: str) -> Progress:
        return self._progress.get(problem, Progress())

    def of(self, problem: str, sample: int | None = None) -> list[TurnRecord]:
        """The records of a problem, or of one sample of it, by sample and turn."""
        with self._lock:
            chosen = sorted(
                (key, offset)
                for key, offset in self._offsets.get(problem, {}).items()
                if sample in (None, key[0])
            )
            if not chosen:
                return []
            file = self._path.open("rb")  # of these offsets, whatever is written from now on
        records = []
        with file:
            for _, offset in chosen:
                file.seek(offset)
                records.append(TurnRecord.model_validate_json(file.readline()))
        return records
