"""A figure at the same budget for all: best so far against calls, tokens, dollars or seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from experiments.analysis.arrays import FloatArray
from experiments.analysis.measures import Measure, Unit
from experiments.analysis.outcomes import Outcomes

if TYPE_CHECKING:
    import pandas as pd

Currency = Literal[
    "calls", "tokens", "answer_characters", "cost_usd", "seconds_wall", "seconds_device"
]
UNITS: dict[Currency, Unit] = {
    "calls": "calls",
    "tokens": "tokens",
    "answer_characters": "tokens",
    "cost_usd": "usd",
    "seconds_wall": "seconds",
    "seconds_device": "seconds",
}
NOUNS: dict[Currency, str] = {
    "calls": "calls",
    "tokens": "tokens",
    "answer_characters": "characters of answers",
    "cost_usd": "dollars",
    "seconds_wall": "wall seconds",
    "seconds_device": "device seconds",
}


def by_search(turns: pd.DataFrame) -> pd.DataFrame:
    """The same turns without second verdicts; a kernel that failed one was never correct.

    Only the last best kernel is judged again. A curve that took its figures from both would fall
    where a problem ends.
    """
    struck = turns["struck"].to_numpy(dtype=bool)
    ratios = {name: turns[name].mask(struck) for name in ("speedup", "speedup_low", "speedup_high")}
    again = [name for name in turns.columns if name.startswith("confirmed_")]
    return turns.assign(
        **ratios,
        status=turns["status"].mask(struck, "incorrect"),
        struck=False,
        **dict.fromkeys(again, np.nan),
    )


def spent_by_call(reached: Outcomes, currency: Currency) -> FloatArray:
    """Shape (problems, calls): all that was spent up to each call; NaN: unknown."""
    each = reached.made.astype(float) if currency == "calls" else reached.spent[currency]
    return np.asarray(each.cumsum(axis=1), dtype=float)


def at_budgets(
    reached: Outcomes, measure: Measure, currency: Currency, budgets: FloatArray
) -> FloatArray:
    """The measure by the calls that each problem could afford, shape (problems, budgets).

    A call counts where it ended within the budget. NaN where an amount is unknown.
    """
    nothing = np.full((len(reached.problems), 1), measure.nothing)
    table = np.concatenate([nothing, measure.table(reached)], axis=1)
    spent = spent_by_call(reached, currency)
    affordable = reached.made[:, :, None] & (spent[:, :, None] <= np.asarray(budgets) * (1 + 1e-9))
    values = np.take_along_axis(table, affordable.sum(axis=1), axis=1)
    return np.where(np.isnan(spent[:, -1:]), np.nan, values)
