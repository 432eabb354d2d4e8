"""What a processor counts while another process works: perf_event_open(2), from outside.

The counters are opened on a process before it starts threads and handed down to all that it starts
(`inherit`). They stay with the process that opened them: one behind the judge's walls may not open
any. Only user mode is counted, which most systems allow to everybody.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import struct
from pathlib import Path

from evaluator.walls.kernel import system_call
from evaluator.walls.syscall_table import NUMBERS

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
"""From 3 on, which some distributions know, users may count nothing."""
_HARDWARE, _SOFTWARE, _CACHE = 0, 1, 3
_MISS = 1 << 16
EVENTS = {
    "cycles": (_HARDWARE, 0),
    "instructions": (_HARDWARE, 1),
    "cache_references": (_HARDWARE, 2),
    "cache_misses": (_HARDWARE, 3),
    "branches": (_HARDWARE, 4),
    "branch_misses": (_HARDWARE, 5),
    "l1_loads": (_CACHE, 0),
    "l1_misses": (_CACHE, _MISS),
}
"""Type and number of each, as in linux/perf_event.h. The first is what all the others are for."""
SOFTWARE = {"task_ns": (_SOFTWARE, 1), "page_faults": (_SOFTWARE, 2)}
"""Counted by the kernel itself: where these can be had and the others can't, a PMU is missing."""
# perf_event_attr in its first version: type, size, config, period, sample type, read format, flags,
# wake-up, breakpoint's type and address.
_ATTRIBUTE = struct.Struct("=IIQQQQQIIQ")
_TIMES = 1 | 2
_DISABLED, _INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1, 2, 1 << 5, 1 << 6
_CLOSE_ON_EXEC = 8
_NO_CALL = -1
_ENABLE, _DISABLE = 0x2400, 0x2401
_READING = struct.Struct("=QQQ")


class NoCountersError(Exception):
    """The processor's counters can't be read here; `remedy` says how they could."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy


class PerfCounters:
    """Counters of a process and of all that it starts, off until `start`."""

    def __init__(self, pid: int, events: dict[str, tuple[int, int]] | None = None) -> None:
        """Open them on every thread that `pid` has. One that this processor lacks is left out.

        Raises `NoCountersError` where the first one can't be opened.
        """
        self._handles: dict[str, list[int]] = {}
        threads = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
        for name, (kind, config) in (events or EVENTS).items():
            try:
                self._handles[name] = [_opened(kind, config, thread) for thread in threads]
            except OSError as error:
                if not self._handles:
                    raise _refused(error) from None

    def start(self) -> None:
        self._switch(_ENABLE)

    def stop(self) -> None:
        self._switch(_DISABLE)

    def read(self) -> dict[str, float]:
        """All counts so far. Where counters took turns, each is scaled to the whole time; one that
        never had its turn is left out."""
        return {name: value for name in self._handles if (value := self._value(name)) is not None}

    def close(self) -> None:
        for handle in self._all():
            os.close(handle)
        self._handles.clear()

    def _all(self) -> list[int]:
        return [handle for handles in self._handles.values() for handle in handles]

    def _switch(self, request: int) -> None:
        for handle in self._all():
            fcntl.ioctl(handle, request, 0)

    def _value(self, name: str) -> float | None:
        readings = [
            _READING.unpack(os.read(handle, _READING.size)) for handle in self._handles[name]
        ]
        if any(enabled and not running for _, enabled, running in readings):
            return None
        return sum(
            (count * enabled / running if running else 0.0) for count, enabled, running in readings
        )


def refusal() -> NoCountersError | None:
    """Why the counters can't be read on this machine; None where they can."""
    try:
        PerfCounters(os.getpid()).close()
    except NoCountersError as error:
        return error
    return None


def _opened(kind: int, config: int, thread: int) -> int:
    flags = _DISABLED | _INHERIT | _NO_KERNEL | _NO_HYPERVISOR
    attribute = _ATTRIBUTE.pack(kind, _ATTRIBUTE.size, config, 0, 0, _TIMES, flags, 0, 0, 0)
    buffer = ctypes.create_string_buffer(attribute, len(attribute))
    number = NUMBERS.get(platform.machine(), {}).get("perf_event_open", _NO_CALL)
    return system_call(number, buffer, thread, -1, -1, _CLOSE_ON_EXEC)


def _refused(error: OSError) -> NoCountersError:
    """In words, as perf_event_open(2) has it; the software's own counters tell EACCES from EPERM
    where a container's filter answers for the kernel."""
    paranoid = ""
    with contextlib.suppress(OSError):
        paranoid = PARANOID.read_text().strip()
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return NoCountersError(
            "the processor shows no counters (a virtual machine without a PMU)",
            "ask for a PMU on the host (vPMU, or KVM's host CPU model), or use a machine of metal",
        )
    if error.errno == errno.EACCES or (paranoid.isdigit() and int(paranoid) > 2):
        return NoCountersError(
            f"closed to users (kernel.perf_event_paranoid is {paranoid or 'unknown'})",
            "as root: sysctl kernel.perf_event_paranoid=2, or give CAP_PERFMON",
        )
    if error.errno == errno.EPERM:
        return NoCountersError(
            "perf_event_open is forbidden here (a container's filter of system calls)",
            "docker run --cap-add PERFMON, or --security-opt seccomp=unconfined",
        )
    return NoCountersError(
        f"perf_event_open failed: {error.strerror}", "needs Linux with CONFIG_PERF_EVENTS"
    )
