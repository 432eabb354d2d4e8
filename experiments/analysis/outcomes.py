"""What one run reached and spent, as arrays over problems and calls. No failure is dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from experiments.analysis.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd

COSTS = ("tokens", "answer_characters", "cost_usd", "seconds_wall", "seconds_device")
RIVALS = ("compile_speedup", "compile_low", "sol_fraction")
"""Columns of `load_runs` that compare a kernel with something else than eager."""
UNBUILT = ("no_code", "build_error")


@dataclass(frozen=True)
class Outcomes:
    """One run: a row a problem, a column a call.

    A call that was not made (the budget of a problem ended early) counts as one that gave nothing.
    """

    run: str
    problems: tuple[str, ...]
    made: BoolArray
    """Shape (problems, calls): the call was made."""
    correct: BoolArray
    """Shape (problems, calls): the answer was a correct kernel."""
    built: BoolArray
    """Shape (problems, calls): the answer held a kernel that could be built."""
    speedup: FloatArray
    """Shape (problems, calls): over eager; 0 where no correct kernel was timed."""
    low: FloatArray
    """Shape (problems, calls): lower end of the speedup's interval, at most 1 where the verdict is
    not `faster`; 0 as above."""
    memory: FloatArray
    """Shape (problems, calls): peak memory over eager's; 0 where it is not known."""
    confirmed: FloatArray
    """Shape (problems,): speedup of the best kernel by its second verdict; 0 where every kernel
    that was judged again failed; NaN where none was judged again within these calls."""
    confirmed_low: FloatArray
    """Shape (problems,): `low` of that verdict; 0 and NaN as above."""
    rivals: dict[str, FloatArray]
    """For each of `RIVALS`, shape (problems, calls): 0 where no correct kernel was timed; NaN where
    one was, and not against this."""
    confirmed_rivals: dict[str, FloatArray]
    """For each of `RIVALS`, shape (problems,), as `confirmed`; by the search where the second
    verdict did not measure it."""
    spent: dict[str, FloatArray]
    """For each of `COSTS`, shape (problems, calls); NaN: unknown. 0 for a call not made."""

    @property
    def calls(self) -> int:
        return int(self.made.shape[1])

    @cached_property
    def solved(self) -> BoolArray:
        """Shape (problems, calls): a correct kernel was found by then, and is left at the end."""
        found = np.logical_or.accumulate(self.correct, axis=1)
        found[:, -1] &= self.confirmed != 0
        return found

    @cached_property
    def best(self) -> FloatArray:
        """Shape (problems, calls): speedup of the best correct kernel so far; 0: none yet.

        It is the highest of several measured figures, so a little of it is luck. After the last
        call it is that of the second verdict, where there is one.
        """
        return _ending_in(self._highest, self.confirmed)

    @cached_property
    def _highest(self) -> FloatArray:
        return np.maximum.accumulate(self.speedup, axis=1)

    @cached_property
    def best_low(self) -> FloatArray:
        """Shape (problems, calls): lower end of the interval of that best kernel; 0: none yet."""
        return _ending_in(self._of_best(self.low), self.confirmed_low)

    def best_against(self, rival: str) -> FloatArray:
        """Shape (problems, calls): one of `RIVALS` of that best kernel; 0: none yet; NaN: unknown.

        It is the best over eager: rivals of one problem take the same time for all kernels.
        """
        return _ending_in(self._of_best(self.rivals[rival]), self.confirmed_rivals[rival])

    @cached_property
    def best_memory(self) -> FloatArray:
        """Shape (problems, calls): peak memory of that best kernel over eager's; 0: not known."""
        return self._of_best(np.where(self.best > 0, self.memory, 0.0))

    def _of_best(self, values: FloatArray) -> FloatArray:
        before = np.concatenate([np.zeros((len(self.problems), 1)), self._highest[:, :-1]], axis=1)
        here = np.where(self.speedup > before, np.arange(self.calls), 0)
        return np.take_along_axis(values, np.maximum.accumulate(here, axis=1), axis=1)

    def faster(self, p: float) -> BoolArray:
        """Shape (problems, calls): best so far is correct and more than `p` times as fast.

        The point estimate, strictly greater: KernelBench's fast_p (arXiv 2502.10517) is the share
        of problems. For p = 0 a correct kernel that could not be timed counts too.
        """
        return self.solved if p == 0 else self.best > p

    def clearly_faster(self, p: float) -> BoolArray:
        """Shape (problems, calls): the lower end of the best kernel's interval is above `p`, and
        where `p` is at least 1 its verdict is `faster`.

        Unchanged eager timed against itself is 'faster' by its point estimate half of the time;
        by this it hardly ever is.
        """
        return self.best_low > p

    @cached_property
    def kept(self) -> FloatArray:
        """Shape (problems, calls): the speedup that a user is left with, at least 1.

        Where no kernel is correct, or none is faster, one keeps eager: a ratio of 1. So failures
        count, nothing is dropped, and the geometric mean exists.
        """
        return np.maximum(self.best, 1.0)


def _ending_in(table: FloatArray, last: FloatArray) -> FloatArray:
    """The table with another last column where that is known (not NaN)."""
    ending = table.copy()
    ending[:, -1] = np.where(np.isnan(last), table[:, -1], last)
    return ending


def _sure(low: pd.Series, verdict: pd.Series) -> FloatArray:
    return low.where(verdict == "faster", low.clip(upper=1.0)).to_numpy(dtype=float)


def outcomes(
    turns: pd.DataFrame, problems: Sequence[str] | None = None, calls: int | None = None
) -> Outcomes:
    """Arrange one run of `load_runs`.

    `problems` chooses and orders the rows (default: all), `calls` the number of columns (default:
    as many as were made).
    """
    names = tuple(problems if problems is not None else dict.fromkeys(turns["problem"]))
    width = int(turns["call"].max()) + 1 if calls is None else calls
    turns = turns[turns["problem"].isin(names) & (turns["call"] < width)]
    place = {name: row for row, name in enumerate(names)}
    at = (turns["problem"].map(place).to_numpy(dtype=int), turns["call"].to_numpy(dtype=int))

    def laid_out(values: FloatArray | float) -> FloatArray:
        table = np.zeros((len(names), width))
        table[at] = values
        return table

    held = turns[turns["confirmed_speedup"].notna()].drop_duplicates("problem", keep="last")
    held = held.assign(confirmed_low=_sure(held["confirmed_low"], held["confirmed_verdict"]))
    struck = dict.fromkeys(turns.loc[turns["struck"], "problem"], 0.0)

    def confirmed(column: str, otherwise: str = "") -> FloatArray:
        """What the last second verdict that held says, or, where it does not, its turn does."""
        values = held[column].fillna(held[otherwise]) if otherwise else held[column]
        found = {**struck, **dict(zip(held["problem"], values, strict=True))}
        return np.array([found.get(name, np.nan) for name in names], dtype=float)

    speedup = np.nan_to_num(laid_out(turns["speedup"].to_numpy(dtype=float)))
    return Outcomes(
        run=str(turns["run"].iloc[0]) if len(turns) else "",
        problems=names,
        made=laid_out(1.0) > 0,
        correct=laid_out(np.asarray(turns["status"] == "correct", dtype=float)) > 0,
        built=laid_out(np.asarray(~turns["status"].isin(UNBUILT), dtype=float)) > 0,
        speedup=speedup,
        low=np.nan_to_num(laid_out(_sure(turns["speedup_low"], turns["verdict"]))),
        memory=np.nan_to_num(
            laid_out((turns["memory_bytes"] / turns["eager_memory_bytes"]).to_numpy(dtype=float)),
            posinf=0.0,
        ),
        confirmed=confirmed("confirmed_speedup"),
        confirmed_low=confirmed("confirmed_low"),
        rivals={
            name: np.where(speedup > 0, laid_out(turns[name].to_numpy(dtype=float)), 0.0)
            for name in RIVALS
        },
        confirmed_rivals={name: confirmed(f"confirmed_{name}", otherwise=name) for name in RIVALS},
        spent={name: laid_out(turns[name].to_numpy(dtype=float)) for name in COSTS},
    )
