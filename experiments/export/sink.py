"""Where turns are sent to while a run goes on, or afterwards."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from experiments.export.recorded_run import RecordedRun, has_ended, recorded_runs
from experiments.runs import run_folders

POLL_S = 2.0


class Sink(Protocol):
    """Takes a run as it stands, again and again, and sends what is new."""

    def update(self, run: RecordedRun) -> None:
        """Send the turns that were not sent before."""
        ...

    def close(self) -> None:
        """Send what is known only at the end. Also called after an error or Ctrl-C."""
        ...


def send(paths: Sequence[Path], sink: Sink, *, follow: bool) -> None:
    """Send the runs at `paths`; with `follow`, until the last command of each has ended."""
    try:
        while True:
            # Asked before the turns are read: what comes in between is read the next time.
            ended = all(has_ended(folder) for path in paths for folder in run_folders(path))
            for run in recorded_runs(paths):
                sink.update(run)
            if ended or not follow:
                return
            time.sleep(POLL_S)
    finally:
        sink.close()
