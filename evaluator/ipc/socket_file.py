"""Unix sockets that lie in folders, however long the names of these are."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def short_name(path: Path) -> Iterator[str]:
    """A name of the socket `path` that is short enough to be bound or connected to."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def connected(path: Path) -> socket.socket:
    """Raises `OSError`."""
    end = socket.socket(socket.AF_UNIX)
    try:
        with short_name(path) as name:
            end.connect(name)
    except OSError:
        end.close()
        raise
    return end
