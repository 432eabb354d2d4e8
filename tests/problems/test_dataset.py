"""Suites that are data sets: Parquet files in KernelBench's schema, and names on the Hub."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from problems.errors import UsageError
from problems.loader import load_problem, load_suite

SUITE = Path(__file__).parent.parent / "data" / "suite"
Row = dict[str, int | str]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data sets are kept here, and the next test does not find them."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(folder))
    return folder


def rows() -> list[Row]:
    """The suite of the tests as KernelBench publishes its own."""
    return [
        {
            "code": path.read_bytes().decode(),
            "level": int(path.parent.name[5:]),
            "name": path.stem,
            "problem_id": int(path.name.partition("_")[0]),
        }
        for path in sorted(SUITE.rglob("*.py"))
    ]


def write(path: Path, content: list[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(content), path)
    return Path(f"hf:{path}")


def test_a_parquet_file_is_the_same_suite_as_the_folder(tmp_path: Path) -> None:
    suite = write(tmp_path / "tasks.parquet", rows())
    loaded, folder = load_suite(suite), load_suite(SUITE)
    same = {"suite", "path"}
    assert [p.model_dump(exclude=same) for p in loaded] == [
        p.model_dump(exclude=same) for p in folder
    ]
    assert {p.suite for p in loaded} == {"tasks.parquet"}
    assert all(p.path.read_text(encoding="utf-8") == p.source for p in loaded)
    assert load_problem("1/19", suite).id == "level1_19_ReLU"


def test_a_folder_with_a_file_for_each_level(tmp_path: Path) -> None:
    for level in (1, 2, 4):
        name = f"level_{level}-00000-of-00001.parquet"
        write(tmp_path / "set" / "data" / name, [r for r in rows() if r["level"] == level])
    loaded = load_suite(Path(f"hf:{tmp_path / 'set'}"))
    assert [p.id for p in loaded] == [p.id for p in load_suite(SUITE)]
    assert {p.suite for p in loaded} == {"set"}


def test_a_name_on_the_hub_is_asked_for_with_its_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Hub's part is played by a folder that is laid out like the published data set."""
    for level in (1, 2, 4):
        name = f"level_{level}-00000-of-00001.parquet"
        write(tmp_path / "hub" / "data" / name, [r for r in rows() if r["level"] == level])
    asked = []
    load = datasets.load_dataset

    def from_folder(name: str, revision: str | None) -> object:
        asked.append((name, revision))
        return load(str(tmp_path / "hub"), cache_dir=str(tmp_path / "arrow"))

    monkeypatch.setattr(datasets, "load_dataset", from_folder)
    for suite in ("hf:someone/tasks@v0.1", "hf:someone/tasks"):
        loaded = load_suite(Path(suite))
        assert [(p.id, p.hash) for p in loaded] == [(p.id, p.hash) for p in load_suite(SUITE)]
        assert {p.suite for p in loaded} == {suite}
    assert asked == [("someone/tasks", "v0.1"), ("someone/tasks", None)]


def test_the_path_is_the_same_until_the_text_changes(tmp_path: Path, cache: Path) -> None:
    first = load_suite(write(tmp_path / "a.parquet", rows()))
    again = load_suite(write(tmp_path / "b.parquet", rows()))
    changed = [{**row, "code": f"{row['code']}\n"} for row in rows()]
    other = load_suite(write(tmp_path / "c.parquet", changed))
    assert [p.path for p in first] == [p.path for p in again]
    assert not {p.path for p in first} & {p.path for p in other}
    assert all(p.path.is_relative_to(cache) for p in [*first, *other])


def test_a_copy_that_somebody_changed_is_made_anew(tmp_path: Path) -> None:
    before = load_suite(write(tmp_path / "a.parquet", rows()))
    before[0].path.write_text("changed")
    assert load_suite(write(tmp_path / "b.parquet", rows()))[0] == before[0].model_copy(
        update={"suite": "b.parquet"}
    )


def test_a_name_cannot_leave_the_cache(tmp_path: Path, cache: Path) -> None:
    row = {**rows()[0], "name": "1_../../../../outside"}
    (problem,) = load_suite(write(tmp_path / "a.parquet", [row]))
    assert problem.path.resolve().is_relative_to(cache.resolve())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda row: {k: v for k, v in row.items() if k != "problem_id"}, "no problem_id"),
        (lambda row: {**row, "level": "one"}, "no level"),
        (lambda row: {**row, "name": ""}, "no name"),
        (lambda row: {**row, "name": "7_same", "problem_id": 7, "level": 1}, "two problems"),
    ],
)
def test_another_schema(tmp_path: Path, change, says: str) -> None:  # type: ignore[no-untyped-def]
    refused(write(tmp_path / "a.parquet", [change(row) for row in rows()]), says)


def refused(suite: Path, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_suite(suite)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_data_set(tmp_path: Path) -> None:
    refused(Path(f"hf:{tmp_path / 'missing.parquet'}"), "does not exist")
    refused(Path(f"hf:{SUITE}"), "holds no .parquet file")
    refused(write(tmp_path / "empty.parquet", []), "can't be read")
    (tmp_path / "text.parquet").write_text("no Parquet")
    (tmp_path / "cache").write_text("no folder")
    refused(write(tmp_path / "tasks.parquet", rows()), "can't be kept")
    refused(Path(f"hf:{tmp_path / 'text.parquet'}"), "can't be read")


def listed(suite: str, *before: str, **env: str) -> subprocess.CompletedProcess[str]:
    """`problems.list` in a process of its own, with some code run before it."""
    code = "; ".join([*before, "import sys; from problems.list import app", "app()"])
    return subprocess.run(
        [sys.executable, "-c", code, "--suite", suite],
        env=os.environ | env,
        capture_output=True,
        text=True,
    )


def test_a_name_on_the_hub_that_cannot_be_reached(tmp_path: Path) -> None:
    nowhere = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = listed("hf:ScalingIntelligence/KernelBench@v0.1", **nowhere)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "hf:ScalingIntelligence/KernelBench@v0.1 can't be read" in done.stderr
    assert "OfflineModeIsEnabled" in done.stderr


def test_without_the_package(tmp_path: Path) -> None:
    suite = write(tmp_path / "tasks.parquet", rows())
    done = listed(str(suite), "import sys", "sys.modules['datasets'] = None")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("pip install datasets\n")
    assert len(done.stderr.splitlines()) == 1


def test_reading_one_never_imports_torch(tmp_path: Path) -> None:
    suite = write(tmp_path / "tasks.parquet", rows())
    done = listed(str(suite), "import atexit, sys", "atexit.register(lambda: print(*sys.modules))")
    *problems, modules = done.stdout.splitlines()
    assert done.stderr == ""
    assert len(problems) == len(rows())
    assert "datasets" in modules.split() and "torch" not in modules.split()
