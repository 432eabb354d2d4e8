"""Many profiles, one after the other: the process of the next one is started ahead."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from evaluator.collect.warm_target import WarmTarget


class NcuSession:
    """Holds at most one spare target. Several threads may use it.

    For a process that profiles again and again and lives longer than one profile; whoever profiles
    once would start a spare in vain. The spare needs memory of the host, but no processor time, no
    device and no lock. It ends with its owner, whatever ends that one.
    """

    def __init__(self) -> None:
        self._spare: WarmTarget | None = None
        self._lock = threading.Lock()

    @property
    def spare_pid(self) -> int | None:
        """Of the spare's session; None where there is no spare."""
        spare = self._spare
        return spare.pid if spare is not None else None

    def take(self, prefix: Sequence[str]) -> WarmTarget | None:
        """The spare that was started with these very options, which is the caller's from now on.

        None where there is none, or it died; one with other options is dropped.
        """
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is None or (spare.waits and spare.prefix == tuple(prefix)):
            return spare
        spare.close()
        return None

    def prepare(self, prefix: Sequence[str]) -> None:
        """Start the spare, unless there is one.

        Not while a candidate runs: what it started is killed with its session first.
        """
        with self._lock:
            if self._spare is None:
                self._spare = WarmTarget(prefix)

    def close(self) -> None:
        """End the spare. Nobody may be profiling any more."""
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None:
            spare.close()
