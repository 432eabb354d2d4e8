"""Runs the target behind the walls that a judged worker has.

`python -m evaluator.collect.target.confined FOLDER MODE FD`: at the other end of FD sits a
`Broker`, in the process that started this one.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.collect.target.owner import Owner
from evaluator.walls import mounts
from evaluator.walls.layers import enclose

if TYPE_CHECKING:
    from evaluator.collect.target.target_process import ConfinedMode


def main(folder: Path, mode: ConfinedMode, fd: int) -> None:
    """Put the walls up, then run the target."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Before torch is imported: threads that it starts must be inside as well.
    layers = enclose(folder)
    if "mount_namespace" in layers:
        # Landlock, which comes later, binds none of these threads.
        with contextlib.suppress(OSError):
            mounts.make_read_only(folder)
            layers.append("read_only")
    from evaluator.collect.target import run as target

    owner = Owner(socket.socket(fileno=fd))
    target.main(folder, mode, owner, (*layers, "separate_builder"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))  # type: ignore[arg-type]
