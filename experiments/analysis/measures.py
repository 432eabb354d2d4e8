"""The figures that runs are measured by: each has a value for every problem after every call."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from experiments.analysis.outcomes import Outcomes
from experiments.analysis.statistics import Estimate, Resamples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

Unit = Literal["share", "ratio", "tokens", "usd", "seconds", "calls"]
Rival = Literal["compile", "pytorch", "bound"]
RIVAL_NAMES: dict[Rival, str] = {
    "compile": "torch.compile",
    "pytorch": "the faster of eager and torch.compile",
    "bound": "the bound",
}
THRESHOLDS = (1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Measure:
    """One figure: the mean over problems of what `table` gives (its exp, for a ratio)."""

    key: str
    label: str
    unit: Unit
    table: Callable[[Outcomes], FloatArray]
    """Shape (problems, calls): as it stands after each call. Logarithms for a ratio."""
    better: Literal["higher", "lower"] = "higher"
    absent: Literal["never", "left out", "unknown"] = "never"
    """What NaN means: a problem that this figure does not cover, or one unknown value too many."""

    nothing: float = 0.0
    """What the table holds before the first call."""

    def covered(self, *tables: FloatArray) -> NDArray[np.bool_]:
        """Shape (problems,): the problems to take the mean over, judged by the last call."""
        missing = np.any([np.isnan(table[:, -1]) for table in tables], axis=0)
        return ~missing if self.absent == "left out" else np.ones_like(missing)

    def estimates(self, table: FloatArray, resamples: Resamples) -> list[Estimate]:
        """The figure after each call, from `table`; NaN where it is unknown."""
        if self.unit == "share":
            return resamples.shares(table)
        estimates = resamples.means(table)
        if self.unit == "ratio":
            return [estimate.map(lambda value: float(np.exp(value))) for estimate in estimates]
        # No cost is below 0; one problem alone would have it without end.
        return [Estimate(e.value, max(e.low, 0.0), e.high) for e in estimates]


def _faster(p: float) -> Measure:
    what = "a correct kernel" if p == 0 else f"correct and > {p:g}x"
    return Measure(
        f"fast_{p:g}",
        f"fast_{p:g}: {what}",
        "share",
        lambda outcomes: outcomes.faster(p).astype(float),
    )


def _clearly_faster(p: float) -> Measure:
    return Measure(
        f"clear_{p:g}",
        f"clearly > {p:g}x (whole interval)",
        "share",
        lambda outcomes: outcomes.clearly_faster(p).astype(float),
    )


def _faster_than(p: float, rival: Rival) -> Measure:
    what = (
        f"correct and above {100 * p:g} % of the speed of light"
        if rival == "bound"
        else f"correct and > {p:g}x {RIVAL_NAMES[rival]}"
    )
    return Measure(
        f"fast_{p:g}_{rival}",
        f"fast_{p:g}_{rival}: {what}",
        "share",
        lambda outcomes: _above(_over(outcomes, rival), p),
        absent="left out",
    )


def _clearly_faster_than(p: float, rival: Rival) -> Measure:
    return Measure(
        f"clear_{p:g}_{rival}",
        f"clearly > {p:g}x {RIVAL_NAMES[rival]} (whole interval)",
        "share",
        lambda outcomes: _above(_over(outcomes, rival, low=True), p),
        absent="left out",
    )


def _over(outcomes: Outcomes, rival: Rival, *, low: bool = False) -> FloatArray:
    """Shape (problems, calls): the best kernel over `rival`; NaN where that is not known."""
    if rival == "bound":
        return outcomes.best_against("sol_fraction")
    compiled = outcomes.best_against("compile_low" if low else "compile_speedup")
    if rival == "compile":
        return compiled
    return np.minimum(compiled, outcomes.best_low if low else outcomes.best)


def _above(values: FloatArray, p: float) -> FloatArray:
    return np.where(np.isnan(values), np.nan, (values > p).astype(float))


def _correct_share(outcomes: Outcomes) -> FloatArray:
    made = np.maximum(outcomes.made.cumsum(axis=1), 1)
    return np.asarray(outcomes.correct.cumsum(axis=1) / made, dtype=float)


def _built_share(outcomes: Outcomes) -> FloatArray:
    made = np.maximum(outcomes.made.cumsum(axis=1), 1)
    return np.asarray(outcomes.built.cumsum(axis=1) / made, dtype=float)


def _kept(outcomes: Outcomes) -> FloatArray:
    return np.asarray(np.log(outcomes.kept), dtype=float)


def _solved(outcomes: Outcomes) -> FloatArray:
    timed = np.where(outcomes.best > 0, outcomes.best, np.nan)
    return np.asarray(np.log(timed), dtype=float)


def _memory(outcomes: Outcomes) -> FloatArray:
    known = np.where(outcomes.best_memory > 0, outcomes.best_memory, np.nan)
    return np.asarray(np.log(known), dtype=float)


def _cost(name: str) -> Callable[[Outcomes], FloatArray]:
    return lambda outcomes: np.asarray(outcomes.spent[name].cumsum(axis=1), dtype=float)


def _price(key: str, label: str, unit: Unit) -> Measure:
    return Measure(key, label, unit, _cost(key), "lower", "unknown")


KEPT = Measure("speedup_kept", "geometric mean speedup, at least 1 (eager kept)", "ratio", _kept)
FAST_0, FAST_1, *FASTER = (_faster(p) for p in (0.0, *THRESHOLDS))
MEASURES: tuple[Measure, ...] = (
    FAST_0,
    FAST_1,
    *FASTER,
    *(_clearly_faster(p) for p in THRESHOLDS),
    Measure("correct_answers", "correct answers, of all calls", "share", _correct_share),
    KEPT,
    Measure(
        "speedup_solved",
        "geometric mean speedup, solved only",
        "ratio",
        _solved,
        absent="left out",
        nothing=np.nan,
    ),
    Measure(
        "memory",
        "peak memory of the best kernel over eager's, solved only",
        "ratio",
        _memory,
        better="lower",
        absent="left out",
        nothing=np.nan,
    ),
    _price("tokens", "tokens a problem", "tokens"),
    _price("cost_usd", "dollars a problem", "usd"),
    _price("seconds_wall", "wall seconds a problem", "seconds"),
    _price("seconds_device", "of these, device seconds (profiling included)", "seconds"),
)
"""Geometric means: `speedup_kept` is over all problems (a failure, or a kernel slower than eager,
counts 1: one keeps eager); `speedup_solved` is KernelBench's, over problems with a correct kernel
only, and says of how many; compared over those that both runs solved."""

BUILT = Measure("built_answers", "answers that could be built, of all calls", "share", _built_share)
SOL = Measure(
    "sol_fraction",
    "share of the speed of light (no correct kernel: 0)",
    "share",
    lambda outcomes: outcomes.best_against("sol_fraction"),
    absent="left out",
)
_NAMED = {measure.key: measure for measure in (*MEASURES, BUILT, SOL)}
_THRESHOLD = re.compile(r"(fast|clear)_(\d+(?:\.\d+)?)(?:_(compile|pytorch|bound))?")


def measure_of(key: str) -> Measure:
    """The measure that `key` names: `fast_P` or `clear_P` for any P, against torch.compile with
    `_compile` behind it, the faster of both with `_pytorch`, the bound with `_bound` (P is a
    fraction of it); or one of the named ones. Raises `ValueError`.
    """
    if key in _NAMED:
        return _NAMED[key]
    found = _THRESHOLD.fullmatch(key)
    if found is None or (found[1] == "clear" and found[3] == "bound"):
        raise ValueError(
            f"{key!r} is no outcome; write fast_P or clear_P with a number P (and _compile or"
            f" _pytorch behind it), fast_P_bound, or one of {', '.join(_plain_names())}"
        )
    p, rival = float(found[2]), found[3]
    if rival is None:
        return _faster(p) if found[1] == "fast" else _clearly_faster(p)
    against = next(each for each in RIVAL_NAMES if each == rival)
    return (_faster_than if found[1] == "fast" else _clearly_faster_than)(p, against)


def _plain_names() -> list[str]:
    return [key for key in _NAMED if not _THRESHOLD.fullmatch(key)]


BY_CALL: tuple[Measure, ...] = (FAST_0, FAST_1, KEPT)
"""What is followed from call to call."""


def last_values(measure: Measure, runs: Sequence[Outcomes]) -> FloatArray:
    """Shape (problems, seeds): after the last call."""
    return np.stack([measure.table(reached)[:, -1] for reached in runs], axis=1)
