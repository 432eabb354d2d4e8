"""What a probe tries to reach: things of the judge's that no worker may touch."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluator.walls import folders
from evaluator.walls.mounts import PRIVATE

NAMESPACES = ("mnt", "net", "ipc", "uts", "pid", "user")
OPEN_TO_ALL, OF_THE_OWNER = "open", "private"


@dataclass(frozen=True)
class Bait:
    """Where it lies, in whole numbers and strings, so that it can be sent as JSON."""

    pid: int
    address: int
    """Of `secret` in the memory of process `pid`."""
    secret: str
    port: int
    """TCP on the loopback device; 0: this process may not listen."""
    abstract_name: str
    """A Unix socket without a file."""
    namespaces: dict[str, str]
    devices: dict[str, int]
    """The file systems of the folders that all users may write to."""
    home_entries: tuple[str, ...]
    """Something in each home that is not empty."""


@contextlib.contextmanager
def bait(folder: Path) -> Iterator[tuple[Bait, int]]:
    """Lay it out in this process and in the empty `folder`, of which a descriptor is yielded."""
    folder.chmod(0o777)
    (folder / OPEN_TO_ALL).write_text("anybody may read this")
    (folder / OF_THE_OWNER).touch(mode=0o600)
    secret = secrets.token_hex(8)
    memory = ctypes.create_string_buffer(secret.encode())
    name = f"refinery-{secrets.token_hex(8)}"
    with contextlib.ExitStack() as ends, socket.socket(socket.AF_UNIX) as abstract:
        port = 0
        with contextlib.suppress(PermissionError):  # there is no network here, nor for a worker
            server = ends.enter_context(socket.create_server(("127.0.0.1", 0)))
            port = server.getsockname()[1]
        abstract.bind(f"\0{name}")
        abstract.listen()
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield (
                Bait(
                    pid=os.getpid(),
                    address=ctypes.addressof(memory),
                    secret=secret,
                    port=port,
                    abstract_name=name,
                    namespaces={
                        kind: str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in NAMESPACES
                    },
                    devices={str(path): path.stat().st_dev for path in PRIVATE if path.is_dir()},
                    home_entries=tuple(_home_entries()),
                ),
                handle,
            )
        finally:
            os.close(handle)


def _home_entries() -> Iterator[str]:
    needed = folders.interpreter_folders() + folders.named_folders()
    for home in folders.homes():
        with contextlib.suppress(OSError):
            for entry in home.iterdir():
                if not any(path.is_relative_to(entry) for path in needed):
                    yield str(entry)
                    break
    for folder in folders.withheld(folders.readable()):
        yield from map(str, list(folder.glob("*.py"))[:1])
