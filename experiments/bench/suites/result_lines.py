"""A file of results, one JSON line each, that the next command with the same file goes on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Generic, TypeVar

import typer
from pydantic import ValidationError

from agent.record.durable import append_whole, write_whole
from evaluator.record import Record
from experiments.bench.suites.machine import Machine
from problems.errors import UsageError

Row = TypeVar("Row", bound=Record)


class Part(Record):
    """The line before the results of one command."""

    machine: Machine
    timing_seconds: float
    shrink: int | None = None

    def __str__(self) -> str:
        trial = f"; a trial, sizes cut to {self.shrink}" if self.shrink is not None else ""
        return f"* {self.machine}; {self.timing_seconds:g} s of timing{trial}"


class ResultLines(Generic[Row]):
    """The rows of a file, and the parts that they were measured in. `path` None: kept nowhere.

    A last line that was cut off is removed. Raises `UsageError` for a file of something else.
    """

    def __init__(self, path: Path | None, kind: type[Row]) -> None:
        self._path = path
        self.parts: list[Part] = []
        self.rows: list[Row] = []
        if path is None or not path.exists():
            return
        whole, _, torn = path.read_bytes().rpartition(b"\n")
        try:
            for line in whole.decode().splitlines():
                is_part = "machine" in json.loads(line)
                if is_part:
                    self.parts.append(Part.model_validate_json(line))
                else:
                    self.rows.append(kind.model_validate_json(line))
        except (ValueError, TypeError, ValidationError):
            raise UsageError(f"{path} holds other results; give another --out") from None
        if torn:
            if not whole:
                raise UsageError(f"{path} holds other results; give another --out")
            path.write_bytes(whole + b"\n")

    def begin(self, part: Part) -> None:
        """Say where the rows that follow were measured."""
        self.parts.append(part)
        self._append(part)

    def add(self, row: Row) -> None:
        """Keep one more row, at once."""
        self.rows.append(row)
        self._append(row)

    def sum_up(self, table: str) -> None:
        """Print the table, and keep it beside the file."""
        if self._path is not None:
            write_whole(self._path.with_suffix(".md"), table)
        typer.echo(table)

    def _append(self, record: Record) -> None:
        if self._path is not None:
            append_whole(self._path, record.model_dump_json())
