"""Files that survive a kill at any instant: whole or not there, and never half written."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.errors import InfrastructureError

TEMPORARY = ".tmp"


class StoreError(InfrastructureError):
    """The run directory can't be written: disk full, no permission, folder gone."""


@contextmanager
def disk_errors_told(path: Path) -> Iterator[None]:
    """Turn an `OSError` inside into a `StoreError` that says what and how to mend it."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "free some space" if full else "check that the folder exists and is writable"
        raise StoreError(
            f"cannot write {path}: {error.strerror}; {remedy} and run the same command again"
        ) from error


def write_durably(path: Path, text: str) -> None:
    """Write `path` whole (temporary file, fsync, rename), its folder being made if need be.

    Raises `StoreError`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}{TEMPORARY}")
    with disk_errors_told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def write_once(path: Path, text: str) -> None:
    """Write a file whose name is the hash of what it holds; nothing to do where it exists."""
    if not path.exists():
        write_durably(path, text)


def append_durably(path: Path, line: str) -> int:
    """Append `line` and a newline; returns the offset at which it begins. Raises `StoreError`."""
    with disk_errors_told(path), path.open("ab") as file:
        offset = file.seek(0, os.SEEK_END)
        try:
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            os.ftruncate(file.fileno(), offset)
            raise
        return offset


def is_leftover(name: str) -> bool:
    """A file of that name was left behind by a process that was killed while it wrote."""
    return name.startswith(".") and name.endswith(TEMPORARY)


def sweep(folder: Path) -> None:
    """Remove temporary files that a killed process left behind in `folder` or one level below."""
    for pattern in (f".*{TEMPORARY}", f"*/.*{TEMPORARY}", f"*/*/.*{TEMPORARY}"):
        for leftover in folder.glob(pattern):
            leftover.unlink(missing_ok=True)
