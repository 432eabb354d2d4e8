"""Hands a library's content from the builder on, as immutable memory.

A worker is given it by descriptor, and needs no right to read any folder.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.errors import BuilderError
from evaluator.ipc.build_request import BuildOutcome, BuildRequest

Build = Callable[[BuildRequest], BuildOutcome]
_EXECUTABLE = 0x0010
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


@contextmanager
def sealed(outcome: BuildOutcome) -> Iterator[tuple[int, ...]]:
    """A descriptor of an immutable copy of its library, if there is one."""
    if not outcome.ok:
        yield ()
        return
    try:
        copy = sealed_copy(Path(outcome.library))
    except FileNotFoundError:
        raise BuilderError(f"{outcome.library} left the build cache before it was read") from None
    try:
        yield (copy,)
    finally:
        os.close(copy)


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
