"""`turns.jsonl`: what has happened, one record a turn, append-only. The one truth of a run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from agent.durable import append_durably
from agent.record import TurnRecord
from problems.errors import UsageError

FILE = "turns.jsonl"


class TurnKey(NamedTuple):
    """Names one turn of a run."""

    problem: str
    sample: int
    turn: int

    def __str__(self) -> str:
        return f"{self.problem}.{self.sample}.{self.turn}"


def key_of(record: TurnRecord) -> TurnKey:
    """The key of `record`."""
    return TurnKey(record.problem, record.sample, record.turn)


def read_turns(run: Path) -> Iterator[TurnRecord]:
    """The records of the run directory `run`, in the order written, without locking or mending.

    A last line that a kill tore is passed over. Raises `UsageError` for any other bad line.
    """
    for _, record in _read(run / FILE):
        yield record


def _read(path: Path) -> Iterator[tuple[int, TurnRecord]]:
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield offset, TurnRecord.model_validate_json(line)
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
    """The writer's view of `turns.jsonl`. Holds offsets only; records are read when asked for."""

    def __init__(self, run: Path) -> None:
        """Read what is there and mend a torn last line. Raises `UsageError` for a bad one."""
        self._path = run / FILE
        self._lock = threading.Lock()
        self._offsets: dict[TurnKey, int] = {}
        for offset, record in _read(self._path):
            self._offsets.setdefault(key_of(record), offset)
        self._mend()

    def _mend(self) -> None:
        """Cut a torn last line; complete one that lacks nothing but its newline."""
        if not self._path.exists():
            return
        text = self._path.read_bytes()
        if not text or text.endswith(b"\n"):
            return
        start = text.rfind(b"\n") + 1
        try:
            TurnRecord.model_validate_json(text[start:])
        except ValidationError:
            with self._path.open("r+b") as file:
                file.truncate(start)
        else:
            with self._path.open("ab") as file:
                file.write(b"\n")

    def append(self, record: TurnRecord) -> bool:
        """Write `record` unless its key is there already; says whether it was written."""
        key = key_of(record)
        with self._lock:
            if key in self._offsets:
                return False
            line = record.model_dump_json(by_alias=True)
            self._offsets[key] = append_durably(self._path, line)
            return True

    def __contains__(self, key: TurnKey) -> bool:
        with self._lock:
            return key in self._offsets

    def next_turn(self, problem: str, sample: int) -> int:
        """The first turn of a sample that is not recorded."""
        return next(turn for turn in count() if TurnKey(problem, sample, turn) not in self)

    def of(self, problem: str, sample: int | None = None) -> list[TurnRecord]:
        """The records of a problem, or of one sample of it, by sample and turn."""
        with self._lock:
            chosen = sorted(
                (key, offset)
                for key, offset in self._offsets.items()
                if key.problem == problem and sample in (None, key.sample)
            )
        if not chosen:
            return []
        records = []
        with self._path.open("rb") as file:
            for _, offset in chosen:
                file.seek(offset)
                records.append(TurnRecord.model_validate_json(file.readline()))
        return records
