"""Hands a library's content from the builder on: it may leave the cache meanwhile.

A worker is given it as immutable memory, by descriptor, and needs no right to read any folder.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from evaluator.errors import BuilderError
from evaluator.ipc.build_request import BuildOutcome, BuildRequest

Build = Callable[[BuildRequest], BuildOutcome]
_ATTEMPTS = 3
_EXECUTABLE = 0x0010
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE

Read = TypeVar("Read")


def built_and_read(
    build: Build, request: BuildRequest, read: Callable[[Path], Read]
) -> tuple[BuildOutcome, Read | None]:
    """The outcome, and what `read` made of its library; None where there is none.

    It is built again where another process made room in the cache before it was read.
    """
    for _ in range(_ATTEMPTS):
        outcome = build(request)
        if not outcome.ok:
            return outcome, None
        with suppress(FileNotFoundError):
            return outcome, read(Path(outcome.library))
    raise BuilderError(f"{request.name} left the build cache {_ATTEMPTS} times before it was read")


@contextmanager
def built_and_sealed(
    build: Build, request: BuildRequest, seal: Callable[[Path], int]
) -> Iterator[tuple[BuildOutcome, tuple[int, ...]]]:
    """The outcome, and a descriptor of the library's copy that `seal` makes, if there is one."""
    outcome, copy = built_and_read(build, request, seal)
    copies = () if copy is None else (copy,)
    try:
        yield outcome, copies
    finally:
        for each in copies:
            os.close(each)


def sealed_copy(path: Path) -> int:
    """A descriptor of an immutable copy, which the caller closes; raises `OSError`."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        copy = os.memfd_create(path.name, flags | _EXECUTABLE)
    except OSError:
        # Linux before 6.3 doesn't know the flag, and all such memory may be executed there.
        copy = os.memfd_create(path.name, flags)
    try:
        with path.open("rb") as file:
            left = os.fstat(file.fileno()).st_size
            while left:
                left -= os.sendfile(copy, file.fileno(), None, left)
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(copy)
        raise
    return copy
