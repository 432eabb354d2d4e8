"""The profiler's own report of a kernel, kept for a person who wants to open it."""

from __future__ import annotations

import shutil
from pathlib import Path

from evaluator.collect.collected import Collected
from evaluator.collect.nsight.read_report import REPORT
from evaluator.collect.target.target import COLLECTED, open_plain
from evaluator.collect.torch_trace import TRACE

MOST_BYTES = 64 * 2**20
"""A larger report is not kept."""


def keep_report(folder: Path, collected: Collected, keep: Path) -> None:
    """Copy what a profiler left in `folder` to `keep`, with the figures that were read from it."""
    keep.mkdir(parents=True, exist_ok=True)
    (keep / COLLECTED).write_text(collected.model_dump_json())
    for name in (REPORT, TRACE):
        _copy(folder / name, keep / name)


def kept_reports(folder: Path) -> dict[str, int]:
    """Sizes in bytes of the reports that are kept in `folder`, by name."""
    paths = (folder / name for name in (REPORT, TRACE))
    return {path.name: path.stat().st_size for path in paths if path.is_file()}


def _copy(source: Path, target: Path) -> None:
    try:
        report = open_plain(source, MOST_BYTES)
    except OSError:
        return  # this profiler leaves none of that name, or it is nothing to be kept
    with report, target.open("wb") as kept:
        shutil.copyfileobj(report, kept)
