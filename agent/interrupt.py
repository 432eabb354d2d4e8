"""Ctrl-C in two stages: the first drains and saves, the second ends at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from evaluator.command.command_line import INTERRUPTED

FIRST = "interrupted: finishing what is in flight and saving; Ctrl-C again ends at once"


@contextmanager
def two_stage_interrupt(
    stop: threading.Event, say: Callable[[str], None], at_once: Callable[[], None]
) -> Iterator[None]:
    """Within the block, the first Ctrl-C sets `stop`; the second calls `at_once` and ends us.

    Outside the main thread signals can't be handled, and nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            # Everything that matters is on disk already: the next command goes on from there.
            at_once()
            os._exit(INTERRUPTED)
        stop.set()
        # Not here: the interrupted code may be in the middle of writing to the same stream.
        threading.Thread(target=say, args=(FIRST,)).start()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
