"""A file's content as immutable memory, to be passed by descriptor.

A worker that is given a library in this way needs no right to read the folder it came from.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

_EXECUTABLE = 0x0010
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def sealed_copy(path: Path) -> int:
    """A descriptor of the copy, the caller's to close; raises `OSError`."""
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
