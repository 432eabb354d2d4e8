from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from experiments.export.table import COLUMNS_KEY
from experiments.runs import load_runs
from tests.command import command, refused
from tests.experiments.export.exports import BY_HAND, REFINED, SAMPLED


def test_parquet_holds_the_table_with_types(tmp_path: Path):
    out = tmp_path / "turns.parquet"
    done = command("experiments.export", "parquet", REFINED, SAMPLED, BY_HAND, "-o", out)
    assert (done.returncode, done.stderr) == (0, f"{out}: 88 turns\n")
    table = pd.read_parquet(out)
    expected = load_runs([REFINED, SAMPLED, BY_HAND])
    assert list(table.columns) == list(expected.columns)
    assert str(table["created"].dtype).endswith(", UTC]")
    assert table["created"].iloc[0] == pd.Timestamp(expected["created"].iloc[0])
    assert (str(table["budget"].dtype), str(table["status"].dtype)) == ("Int64", "category")
    assert str(table["call"].dtype) == "int64"
    assert table["speedup_low"].equals(expected["speedup_low"])
    assert list(table["run"]) == list(expected["run"])
    assert list(table["message"]) == list(expected["message"])
    speedups = pq.read_table(out)["speedup"]
    assert speedups.null_count == expected["speedup"].isna().sum() > 0
    meaning = pq.read_schema(out).metadata[COLUMNS_KEY].decode()
    assert meaning == load_runs.__doc__
    assert all(f"`{name}`" in meaning for name in expected.columns)


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path):
    (tmp_path / "file").write_text("")
    line = refused("experiments.export", "parquet", REFINED, "-o", tmp_path / "file/turns")
    assert line.startswith("error: cannot write")
