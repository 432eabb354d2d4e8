"""Claimed speedups, read from a CSV file."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

from evaluator.batch.eval_results import KernelName
from evaluator.record import Record
from problems.errors import UsageError
from problems.plain_file import open_plain

_MOST_BYTES = 64 * 2**20
_COLUMNS = "its columns are level, task, claimed, and if wanted sample (0) and kernelbench"


class Claim(Record):
    speedup: float
    kernelbench: str = ""
    """KernelBench's verdict, `correct` or any other word; empty where it is not known."""


def read_claims(path: Path) -> dict[KernelName, Claim]:
    """Columns: docs/suites.md. Raises `UsageError` for what can't be read, with the line."""
    try:
        with open_plain(path, _MOST_BYTES) as file:
            text = file.read(_MOST_BYTES).decode("utf-8-sig")
            rows = csv.DictReader(io.StringIO(text, newline=""))
            columns = {_meaning(name): name for name in rows.fieldnames or ()}
            if missing := {"level", "task", "claimed"} - columns.keys():
                raise UsageError(f"{path} has no column {', '.join(sorted(missing))}: {_COLUMNS}")
            claims: dict[KernelName, Claim] = {}
            for row in rows:
                place = f"{path}, line {rows.line_num}"
                cells = {meaning: (row[name] or "").strip() for meaning, name in columns.items()}
                kernel, claim = _claim(cells, place)
                if kernel in claims:
                    raise UsageError(f"{place}: a second claim for the same kernel")
                claims[kernel] = claim
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} can't be read: {error}") from None
    return claims


def _meaning(column: str) -> str:
    """`claimed_speedup_h100` is a claim, and `kernelbench_0_2` a verdict of KernelBench's."""
    name = column.strip().lower()
    if name == "problem":
        return "task"
    return next((word for word in ("claimed", "kernelbench") if name.startswith(word)), name)


def _claim(cells: dict[str, str], place: str) -> tuple[KernelName, Claim]:
    try:
        kernel = KernelName(int(cells["level"]), int(cells["task"]), int(cells.get("sample") or 0))
        speedup = float(cells["claimed"].rstrip("xX"))
    except ValueError as error:
        raise UsageError(f"{place}: {error}; {_COLUMNS}") from None
    if not (math.isfinite(speedup) and speedup > 0):
        raise UsageError(f"{place}: a speedup of {speedup:g} is none; {_COLUMNS}")
    # It will stand on a terminal.
    word = "".join(filter(str.isprintable, cells.get("kernelbench", "")))
    return kernel, Claim(speedup=speedup, kernelbench=word)
