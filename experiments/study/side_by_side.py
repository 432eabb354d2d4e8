"""Two studies of the same cells, turn by turn: one judged again on other hardware, say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict

from agent.record.run_files import RunFiles
from experiments.analysis.interval import Interval, interval_of
from experiments.analysis.statistics import Resamples
from experiments.analysis.table import DASH, Table, interval
from experiments.runs import load_runs
from experiments.study.cell import cell_names
from experiments.study.study_folder import StudyFolder
from problems.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

_TURN = ["problem", "sample", "turn"]


class CellBesideCell(BaseModel):
    """One cell as both studies have it, over the turns whose kernels are the same in both."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    cell: str
    turns: int
    """In both, with the same kernel (or with none in both)."""
    of_turns: int
    """In the first study."""
    same_status: float | None
    """Share of these turns."""
    same_verdict: float | None
    """Share of those that are correct in both."""
    speedup: Interval | None
    """Of the second study over the first: geometric mean over problems, each the mean over turns
    that are correct in both."""
    same_best: int
    """Problems whose best turn is the same."""
    of_problems: int
    """With a correct kernel in both."""


class SideBySide(BaseModel):
    """All cells that both studies have."""

    model_config = ConfigDict(frozen=True)

    first: str
    second: str
    first_device: str
    second_device: str
    cells: tuple[CellBesideCell, ...]


def side_by_side(first: Path, second: Path, *, seed: int = 0) -> SideBySide:
    """Raises `UsageError` where one is no study, or they have no cell with turns in common."""
    names = []
    for path in (first, second):
        record = StudyFolder(path).record()
        if record is None:
            raise UsageError(f"{path} is no study; name two folders of experiments.matrix")
        names.append([name for name in cell_names(record.plan) if _has_turns(path / name)])
    both = [name for name in names[0] if name in names[1]]
    if not both:
        raise UsageError(f"{first} and {second} have no cell in common; their models' names differ")
    cells = tuple(_beside(name, first / name, second / name, seed) for name in both)
    devices = [str(RunFiles(p / both[0]).environment().get("device", "")) for p in (first, second)]
    return SideBySide(
        first=first.resolve().name,
        second=second.resolve().name,
        first_device=devices[0],
        second_device=devices[1],
        cells=cells,
    )


def _has_turns(cell: Path) -> bool:
    return any(cell.glob("turns.jsonl*"))


def _beside(name: str, first: Path, second: Path, seed: int) -> CellBesideCell:
    a, b = (load_runs(path) for path in (first, second))
    both = a.merge(b, on=_TURN, suffixes=("_a", "_b"))
    same = both[both["candidate_a"] == both["candidate_b"]]
    correct = same[(same["status_a"] == "correct") & (same["status_b"] == "correct")]
    timed = correct[correct["speedup_a"].notna() & correct["speedup_b"].notna()]
    timed = timed.assign(ratio=np.log(timed["speedup_b"]) - np.log(timed["speedup_a"]))
    ratios = timed.groupby("problem")["ratio"].mean()
    bests = [timed.groupby("problem")[f"speedup_{side}"].idxmax() for side in "ab"]
    return CellBesideCell(
        cell=name,
        turns=len(same),
        of_turns=len(a),
        same_status=_share(same["status_a"] == same["status_b"]),
        same_verdict=_share(timed["verdict_a"] == timed["verdict_b"]),
        speedup=_geometric_mean(ratios.to_numpy(dtype=float), seed),
        same_best=int((bests[0] == bests[1]).sum()),
        of_problems=len(bests[0]),
    )


def _share(agree: pd.Series[bool]) -> float | None:
    return float(agree.mean()) if len(agree) else None


def _geometric_mean(logs: np.ndarray, seed: int) -> Interval | None:
    if not len(logs):
        return None
    return interval_of(
        Resamples.of(len(logs), seed=seed).mean(logs).map(lambda v: float(np.exp(v)))
    )


def side_by_side_lines(told: SideBySide) -> Iterator[str]:
    """What the table is of."""
    yield f"{told.second} ({told.second_device}) beside {told.first} ({told.first_device})"
    yield "Over turns with the same kernel in both; speedups are the second's over the first's."


def side_by_side_table(told: SideBySide) -> Table:
    """A row a cell."""
    heading = ("cell", "same kernel", "same status", "same verdict", "speedups", "same best turn")
    rows: Sequence[tuple[str, ...]] = [
        (
            each.cell,
            f"{each.turns} of {each.of_turns}",
            _percent(each.same_status),
            _percent(each.same_verdict),
            interval(each.speedup, "ratio", DASH),
            f"{each.same_best} of {each.of_problems}",
        )
        for each in told.cells
    ]
    return Table(heading, rows)


def _percent(share: float | None) -> str:
    return DASH if share is None else f"{100 * share:.0f} %"
