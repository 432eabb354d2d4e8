"""Files that survive a kill at any instant: whole or not there, and never half written.

Those written durably survive a power cut as well, which costs a wait for the disk each time. What
can be worked out again is only written whole.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from evaluator.errors import InfrastructureError

TEMPORARY = ".tmp"


class StoreError(InfrastructureError):
    """The run directory can't be written: disk full, no permission, folder gone."""


@contextmanager
def disk_errors_told(path: Path) -> Iterator[None]:
    """Turn an `OSError` inside into a `StoreError` that says what is wrong and how to fix it."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "free some space" if full else "check that the folder exists and is writable"
        raise StoreError(
            f"cannot write {path}: {error.strerror}; {remedy} and run the same command again"
        ) from error


def write_durably(path: Path, text: str) -> None:
    """Write `path` whole and wait until it is on the disk, its folder being made if need be.

    Raises `StoreError`.
    """
    write_whole(path, text, wait=True)


def write_whole(path: Path, text: str, *, wait: bool = False) -> None:
    """Write `path` so that a kill leaves the old file or the new one, its folder being made if need
    be. A power cut may leave an empty one: only for what is checked, or made again, when it is read
    after that. Raises `StoreError`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}{TEMPORARY}")
    with disk_errors_told(path):
        try:
            with _opened(temporary, "wb") as file:
                file.write(text.encode())
                file.flush()
                if wait:
                    os.fsync(file.fileno())
            put_in_place(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _opened(path: Path, mode: Literal["wb", "ab"]) -> BinaryIO:
    try:
        return path.open(mode)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open(mode)


def put_in_place(temporary: Path, path: Path) -> None:
    """The instant at which a file is there: the last step of every write of a whole file."""
    temporary.replace(path)


def write_once(path: Path, text: str) -> None:
    """Write a file whose name is the hash of what it holds; nothing to do where it exists."""
    if not path.exists():
        write_durably(path, text)


def append_durably(path: Path, line: str) -> int:
    return append_line(path, line, wait=True)


def append_whole(path: Path, line: str) -> int:
    """To a file of lines of which a torn last one is passed over."""
    return append_line(path, line, wait=False)


def append_line(path: Path, line: str, *, wait: bool) -> int:
    """Append `line` and a newline whole, or nothing where the disk refuses; returns the offset at
    which it begins. The folder is made if need be. Raises `StoreError`."""
    with disk_errors_told(path), _opened(path, "ab") as file:
        offset = file.seek(0, os.SEEK_END)
        try:
            file.write(line.encode() + b"\n")
            file.flush()
            if wait:
                os.fsync(file.fileno())
        except OSError:
            os.ftruncate(file.fileno(), offset)
            raise
        return offset


def is_leftover(name: str) -> bool:
    """A file of that name was left behind by a process that was killed while it wrote."""
    return name.startswith(".") and name.endswith(TEMPORARY)


def sweep(folder: Path) -> None:
    """Remove temporary files that a killed process left behind in `folder` or below."""
    for place, _, names in os.walk(folder):
        for name in names:
            if is_leftover(name):
                Path(place, name).unlink(missing_ok=True)
