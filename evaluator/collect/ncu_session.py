"""Many profiles, one after the other: the process of the next one is started ahead."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from evaluator.collect.target.target import Target


class NcuSession:
    """Holds spare targets. Several threads may use it.

    A process that profiles several candidates uses it; for a single profile a spare would start in
    vain. A spare needs memory of the host, but no processor time, no device and no lock. It ends
    with its owner, whatever ends that one.
    """

    def __init__(self, most: int = 1) -> None:
        """`most`: spares at a time, of use for as many profiles at a time, one on each device."""
        self._most = most
        self._spares: list[Target] = []
        self._lock = threading.Lock()

    @property
    def spare_pid(self) -> int | None:
        """Of the session of the spare that is handed out next; None where there is no spare."""
        spares = self._spares
        return spares[0].pid if spares else None

    def take(self, prefix: Sequence[str]) -> Target | None:
        """A spare that was started with these very options, which is the caller's from now on.

        None where there is none, or it died; those with other options are dropped.
        """
        with self._lock:
            fit = [s for s in self._spares if s.waits and s.prefix == tuple(prefix)]
            unfit = [s for s in self._spares if s not in fit]
            self._spares = fit[1:]
        for spare in unfit:
            spare.close()
        return fit[0] if fit else None

    def prepare(self, prefix: Sequence[str]) -> None:
        """Start one more spare, unless there are enough.

        Not while its candidate runs: what that one started is killed with its session first.
        """
        with self._lock:
            if len(self._spares) < self._most:
                self._spares.append(Target("ncu", prefix))

    def close(self) -> None:
        with self._lock:
            spares, self._spares = self._spares, []
        for spare in spares:
            spare.close()
