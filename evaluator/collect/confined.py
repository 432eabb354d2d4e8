"""Runs the target behind the walls that a judged worker has, builds apart.

`python -m evaluator.collect.confined FOLDER MODE FD`: over FD it asks the trusted builder, which
lives in the process that started this one.
"""

from __future__ import annotations

import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.build_request import BuildOutcome, BuildRequest, decode_outcome, encode_request
from evaluator.collect.call_counter import Mark
from evaluator.walls.layers import enclose
from evaluator.wire import Channel, Kind

if TYPE_CHECKING:
    from evaluator.collect.target_process import ConfinedMode


def main(folder: Path, mode: ConfinedMode, fd: int) -> None:
    """Put the walls up, then run the target."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Before torch is imported: threads that it starts must be inside as well.
    layers = enclose(folder)
    from evaluator.collect import target

    channel = Channel(socket.socket(fileno=fd), takes_fds=True)

    def build(request: BuildRequest) -> BuildOutcome:
        channel.send(Kind.BUILD, encode_request(request))
        message = channel.receive()
        outcome = decode_outcome(message.payload)
        if message.fds:
            return replace(outcome, library=f"/proc/self/fd/{message.fds[0]}")
        return outcome

    def count(mark: Mark) -> bool:
        channel.send(Kind.COUNT, bytes([mark]))
        return bool(channel.receive().payload)

    target.main(folder, mode, build, (*layers, "separate_builder"), count)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))  # type: ignore[arg-type]
