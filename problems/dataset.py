"""Suites that are data sets in KernelBench's schema: on the Hugging Face Hub, or Parquet files."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from problems.cache_folder import cache_folder
from problems.errors import UsageError

_PREFIX = "hf:"
_COLUMNS = {"level": int, "problem_id": int, "name": str, "code": str}


def is_dataset(suite: Path) -> bool:
    """Whether a suite is named `hf:NAME[@REVISION]`, `hf:FOLDER` or `hf:FILE.parquet`."""
    return str(suite).startswith(_PREFIX)


def dataset_name(suite: Path) -> str:
    """What records call it: all of a name on the Hub with its revision, the last part of a path."""
    local = _local(suite)
    return str(suite) if local is None else local.resolve().name


@cache
def folder_of(suite: Path) -> Path:
    """The data set as a folder `level{L}/{number}_{name}.py` in the cache, named by its content.

    Raises `UsageError` for a data set that can't be had or kept, and for one with other columns.
    """
    files: dict[str, str] = {}
    for number, row in enumerate(_rows(suite)):
        missing = [
            column
            for column, kind in _COLUMNS.items()
            if not isinstance(row.get(column), kind) or row[column] == ""
        ]
        if missing:
            raise UsageError(
                f"{suite}: row {number} has no {' and no '.join(missing)}; a data set of problems"
                " has level and problem_id (integers), name and code (text), as KernelBench's"
            )
        path = _path(row["level"], row["problem_id"], row["name"])
        if files.setdefault(path, row["code"]) != row["code"]:
            raise UsageError(f"{suite} has two problems {path}; give one of them another name")
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    folder = cache_folder() / "suites" / digest
    try:
        for path, code in files.items():
            _write(folder / path, code.encode())
    except OSError as error:
        raise UsageError(
            f"{suite} can't be kept in {folder} ({error.strerror}); name a folder that can be"
            " written in KERNEL_REFINERY_CACHE"
        ) from None
    return folder


def _path(level: int, number: int, name: str) -> str:
    """Safe as a path whatever the name is, and the same as in a folder of KernelBench's."""
    stem = re.sub(r"[^A-Za-z0-9_.-]", "_", name.removesuffix(".py"))
    return f"level{level}/{number}_{stem.removeprefix(f'{number}_')}.py"


def _write(path: Path, content: bytes) -> None:
    """Write it in one step, unless it is there: other processes may read and write it too."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    Path(file.name).replace(path)


def _local(suite: Path) -> Path | None:
    """The file or folder that is meant; None for a name on the Hub."""
    name = str(suite).removeprefix(_PREFIX)
    path = Path(name).expanduser()
    looks_local = name.startswith((".", "/", "~")) or path.suffix == ".parquet"
    return path if looks_local or path.exists() else None


def _rows(suite: Path) -> Iterator[Mapping[str, Any]]:
    local = _local(suite)
    files = [] if local is None else _parquet_files(local)
    try:
        import datasets
    except ImportError:
        raise UsageError(
            f"--suite {suite} needs the package datasets: pip install datasets"
        ) from None
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # what it logs, it raises too
    datasets.config.TORCH_AVAILABLE = False  # or it imports torch to look for tensors
    try:
        if files:
            tables: Iterable[Any] = [
                datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
            ]
        else:
            name, _, revision = str(suite).removeprefix(_PREFIX).partition("@")
            tables = datasets.load_dataset(name, revision=revision or None).values()
        for table in tables:
            yield from table
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        first_line = str(error).partition("\n")[0]
        raise UsageError(
            f"{suite} can't be read ({first_line}); check its name, its revision and the network,"
            " or give a Parquet file: hf:./FILE.parquet"
        ) from None


def _parquet_files(path: Path) -> list[str]:
    found = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    if not found:
        what = "holds no .parquet file" if path.is_dir() else "does not exist"
        raise UsageError(f"{path} {what}; --suite hf:PATH takes a Parquet file or a folder of them")
    return [str(file) for file in found]
