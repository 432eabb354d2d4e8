"""The figures that runs are measured by: each has a value for every problem after every call."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from experiments.analysis.arrays import BoolArray, FloatArray
from experiments.analysis.outcomes import Outcomes
from experiments.analysis.statistics import Estimate, Resamples

Unit = Literal["share", "ratio", "tokens", "usd", "seconds", "calls"]
Rival = Literal["eager", "compile", "pytorch", "bound"]
RIVALS: dict[Rival, tuple[str, str]] = {
    "eager": ("", ""),
    "compile": ("_compile", " torch.compile"),
    "pytorch": ("_pytorch", " the faster of eager and torch.compile"),
    "bound": ("_bound", " the bound"),
}
"""The end of a measure's key, and of its label."""
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

    def covered(self, *tables: FloatArray) -> BoolArray:
        """Shape (problems,): the problems to take the mean over, judged by the last call."""
        missing = np.any([np.isnan(table[:, -1]) for table in tables], axis=0)
        return ~missing if self.absent == "left out" else np.ones_like(missing)

    def in_unit(self, difference: Estimate) -> Estimate:
        """Of two values of the table: a quotient where these are logarithms."""
        return difference.exp() if self.unit == "ratio" else difference

    def estimates(self, table: FloatArray, resamples: Resamples) -> list[Estimate]:
        """The figure after each call, from `table`; NaN where it is unknown."""
        if self.unit == "share":
            return resamples.shares(table)
        estimates = resamples.means(table)
        if self.unit == "ratio":
            return [estimate.exp() for estimate in estimates]
        # No cost is below 0; one problem alone would have it without end.
        return [Estimate(e.value, max(e.low, 0.0), e.high) for e in estimates]


def share_above(p: float, rival: Rival = "eager", *, clearly: bool = False) -> Measure:
    """The best kernel is more than `p` times as fast as `rival`, or above that fraction of the
    bound; `clearly`: the whole interval of its speedup is, by a verdict `faster` where `p` is at
    least 1."""
    key = f"{'clear' if clearly else 'fast'}_{p:g}{RIVALS[rival][0]}"
    more = f"> {p:g}x{RIVALS[rival][1]}"
    if clearly:
        label = f"clearly {more} (whole interval)"
    elif rival == "bound":
        label = f"{key}: correct and above {100 * p:g} % of the speed of light"
    else:
        label = f"{key}: correct and {more}" if p else f"{key}: a correct kernel"

    def table(outcomes: Outcomes) -> FloatArray:
        if rival == "eager":
            hits = outcomes.clearly_faster(p) if clearly else outcomes.faster(p)
            return hits.astype(float)
        values = _over(outcomes, rival, low=clearly)
        return np.where(np.isnan(values), np.nan, (values > p).astype(float))

    return Measure(key, label, "share", table, absent="never" if rival == "eager" else "left out")


def _over(outcomes: Outcomes, rival: Rival, *, low: bool = False) -> FloatArray:
    """Shape (problems, calls): the best kernel over `rival`; NaN where that is not known."""
    if rival == "bound":
        return outcomes.best_against("sol_fraction")
    compiled = outcomes.best_against("compile_low" if low else "compile_speedup")
    if rival == "compile":
        return compiled
    return np.minimum(compiled, outcomes.best_low if low else outcomes.best)


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
FAST_0, FAST_1, *FASTER = (share_above(p) for p in (0.0, *THRESHOLDS))
MEASURES: tuple[Measure, ...] = (
    FAST_0,
    FAST_1,
    *FASTER,
    *(share_above(p, clearly=True) for p in THRESHOLDS),
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
CHARACTERS = _price("answer_characters", "characters of answers a problem", "tokens")


def _solved_after(right: bool) -> Callable[[Outcomes], FloatArray]:
    return lambda outcomes: np.where(outcomes.correct[:, :1] == right, _solved(outcomes), np.nan)


RIGHT_FIRST, RESCUED = (
    Measure(
        f"speedup_{key}",
        f"geometric mean speedup, call 1 {words}",
        "ratio",
        _solved_after(right),
        absent="left out",
        nothing=np.nan,
    )
    for key, words, right in (
        ("right_first", "correct", True),
        ("rescued", "failed, a later one correct", False),
    )
)
OF_STUDIES = (BUILT, *MEASURES, CHARACTERS, SOL)
_NAMED = {measure.key: measure for measure in (*OF_STUDIES, RIGHT_FIRST, RESCUED)}
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
    rival = next(name for name in RIVALS if name == (found[3] or "eager"))
    return share_above(float(found[2]), rival, clearly=found[1] == "clear")


def _plain_names() -> list[str]:
    return [key for key in _NAMED if not _THRESHOLD.fullmatch(key)]


BY_CALL: tuple[Measure, ...] = (FAST_0, FAST_1, KEPT)
"""What is followed from call to call."""


def last_values(measure: Measure, runs: Sequence[Outcomes]) -> FloatArray:
    """Shape (problems, seeds): after the last call."""
    return np.stack([measure.table(reached)[:, -1] for reached in runs], axis=1)
