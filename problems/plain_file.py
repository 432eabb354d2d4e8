"""Files in a folder that somebody else has filled: a link, a pipe or a device may stand there."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from problems.errors import UsageError


def open_plain(path: Path, most_bytes: int, *, follows: bool = False) -> IO[bytes]:
    """A file, open for reading, without waiting for anybody.

    It may grow meanwhile: read no more than `most_bytes`.

    Raises `OSError` for what is no plain file, for one that is larger, and for a link unless this
    `follows` it, as for a path that the user names himself.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows else os.O_NOFOLLOW)
    try:
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP and not follows and path.is_symlink():
            raise OSError(error.errno, "it is a link", str(path)) from None
        raise
    status = os.fstat(handle)
    wrong = ""
    if not stat.S_ISREG(status.st_mode):
        wrong = "it is no plain file"
    elif status.st_size > most_bytes:
        wrong = f"it has more than {most_bytes:,} bytes"
    if wrong:
        os.close(handle)
        raise OSError(errno.EINVAL, wrong, str(path))
    return os.fdopen(handle, "rb")


def insist_on_plain_files(folder: Path, names: Iterable[str]) -> None:
    """Raises `UsageError` where a link, a pipe or a device is among these files and folders, or
    below: what reads it may wait for ever, or show what lies elsewhere."""
    waiting = [folder / name for name in names]
    for path in waiting:
        if path.is_symlink() or (path.exists() and not (path.is_file() or path.is_dir())):
            raise UsageError(f"{path} is a link or no plain file: remove it")
        if path.is_dir():
            waiting += sorted(path.iterdir())


def write_plain(path: Path, text: str) -> None:
    """Write a file, whole or not at all, in place of an earlier one or of a link.

    Raises `UsageError`.
    """
    draft = path.with_name(f".{secrets.token_hex(8)}")
    with writing(path):
        try:
            with draft.open("x", encoding="utf-8") as file:
                file.write(text)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raises `UsageError` where this file can't be written, as on a full disk."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from None
