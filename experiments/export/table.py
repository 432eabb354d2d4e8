"""`parquet`: one row a turn, with the columns of `experiments.runs.load_runs`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent.record.durable import disk_errors_told
from experiments.runs import load_runs

if TYPE_CHECKING:
    import pandas as pd

COUNTS = ("budget", "memory_bytes", "eager_memory_bytes")
"""Whole numbers that may be absent, and are NaN among floats until then."""
OWN_TEXT = ("candidate", "parent", "plan", "message", "judged_with", "profiled_with")
"""Text that differs from turn to turn; all other text is a category."""
COLUMNS_KEY = b"kernel_refinery.columns"
"""Key of the Parquet file's metadata that holds what the columns mean."""


def typed(turns: pd.DataFrame) -> pd.DataFrame:
    """The table of `load_runs` with types: timestamps (UTC), nullable integers, categories."""
    import pandas as pd

    text = [c for c in turns.columns if pd.api.types.is_string_dtype(turns[c])]
    categories = [c for c in text if c not in (*OWN_TEXT, "created")]
    created = pd.to_datetime(turns["created"].replace("", None), utc=True, format="ISO8601")
    return turns.astype(
        {
            **dict.fromkeys(COUNTS, "Int64"),
            **dict.fromkeys(OWN_TEXT, "string"),
            **dict.fromkeys(categories, "category"),
        }
    ).assign(created=created)


def write_parquet(runs: Sequence[Path], output: Path) -> int:
    """Write `output` and return the number of turns. Absent numbers are null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    turns = typed(load_runs(runs))
    table = pa.Table.from_pandas(turns, preserve_index=False)
    meaning = {COLUMNS_KEY: (load_runs.__doc__ or "").encode()}
    with disk_errors_told(output):
        pq.write_table(table.replace_schema_metadata({**table.schema.metadata, **meaning}), output)
    return len(turns)
