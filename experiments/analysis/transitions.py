"""What became of a kernel from one turn to the next: repaired, broken, or failing otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluator.evaluation import Status

if TYPE_CHECKING:
    import pandas as pd

ORDER = tuple(status.value for status in Status)
"""Statuses from the furthest from a kernel to a correct one."""


def transitions(turns: pd.DataFrame) -> pd.DataFrame:
    """Count the steps from one turn to the next of the same sample, by status.

    Rows: the status of a turn; columns: that of the turn after it; both in `ORDER`, statuses that
    never occur left out. A run that samples has no steps: the table is empty.
    """
    import pandas as pd

    ordered = turns.sort_values(["run", "problem", "sample", "turn"], kind="stable")
    sample = [ordered["run"], ordered["problem"], ordered["sample"]]
    after = ordered["status"].groupby(sample, sort=False).shift(-1)
    stepped = after.notna()
    counts = pd.crosstab(ordered.loc[stepped, "status"], after[stepped])
    seen = [name for name in ORDER if name in counts.index or name in counts.columns]
    table = counts.reindex(index=seen, columns=seen, fill_value=0)
    return table.rename_axis(index="status", columns="next status").astype(int)
