"""Tries to break each wall from inside: a layer is reported only where its attack failed.

The attack on a layer is made as soon as that layer is up, before the next one is: so it is
this layer that is tried, and not a later one that would have stopped the same attack. At the end
everything is tried once more on the judge itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import resource
import signal
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

from evaluator.walls.bait import OF_THE_OWNER, OPEN_TO_ALL, Bait
from evaluator.walls.environment import ENVIRONMENT, clean_environment
from evaluator.walls.kernel import (
    CLONE_NEWUSER,
    MS_NODEV,
    PR_GET_NO_NEW_PRIVS,
    PR_GET_PDEATHSIG,
    mount,
    prctl,
    system_call,
)
from evaluator.walls.seccomp import DENIED, NUMBERS

JUDGE_OUT_OF_REACH = "judge_out_of_reach"
_GIVEN_BACK = 2**30
"""More than a worker that has run nothing gives back of its address space."""
_MAP_NORESERVE = 0x4000
_CONTRADICTION = 0x200
"""CLONE_FS beside a new user namespace is an error: nothing is made if the call gets through."""


class Probe:
    """Runs in a process that is being confined, which is thrown away afterwards."""

    def __init__(self, bait: Bait, folder: int, scratch: Path, memory_bytes: int | None) -> None:
        """`folder`: a descriptor of the bait's, which no mount can hide."""
        self._bait = bait
        self._folder = folder
        self._scratch = scratch
        self._memory_bytes = memory_bytes
        self._outsider: tuple[int, int] | None = None
        self.held: list[str] = []
        self._attacks: dict[str, Callable[[], bool]] = {
            "user_namespace": lambda: self._shared("user"),
            "mount_namespace": lambda: self._shared("mnt"),
            "homes_hidden": lambda: any(map(os.path.lexists, self._bait.home_entries)),
            "network_namespace": lambda: self._shared("net") or self._network(),
            "ipc_namespace": lambda: self._shared("ipc"),
            "uts_namespace": lambda: self._shared("uts"),
            "pid_namespace": lambda: self._shared("pid") or self._signal(),
            "read_only": self._change_mode,
            "own_tmp": self._tmp,
            "own_proc": self._processes,
            "own_uid": self._root,
            "uid_nobody": self._root,
            "no_capabilities": self._capabilities,
            "no_new_privs": lambda: prctl(PR_GET_NO_NEW_PRIVS) != 1,
            "dies_with_parent": self._orphan,
            "clean_environment": self._environment,
            "rlimits": self._limits,
            "memory_limit": self._memory,
            "landlock": self._files,
            "landlock_network": self._listen,
            "landlock_scope": self._signal_outside,
            "seccomp": self._system_calls,
            "network": self._network,
            JUDGE_OUT_OF_REACH: lambda: (
                self._signal() or self._read_memory() or self._network() or self._files()
            ),
        }

    def breaks(self, layer: str) -> bool:
        return self._attacks[layer]()

    def reached(self, layer: str) -> None:
        if layer == "no_capabilities":
            self._leave_outsider()
        if not self.breaks(layer):
            self.held.append(layer)

    def finish(self) -> tuple[str, ...]:
        if self._outsider is not None:
            os.close(self._outsider[1])
        if not self.breaks(JUDGE_OUT_OF_REACH):
            self.held.append(JUDGE_OUT_OF_REACH)
        return tuple(self.held)

    def _shared(self, kind: str) -> bool:
        return str(Path(f"/proc/self/ns/{kind}").readlink()) == self._bait.namespaces[kind]

    def _network(self) -> bool:
        return works(lambda: _connect(socket.AF_INET, ("127.0.0.1", self._bait.port))) or works(
            lambda: _connect(socket.AF_UNIX, f"\0{self._bait.abstract_name}")
        )

    def _signal(self) -> bool:
        """The signal that does nothing. In another PID namespace the number may be our own's."""
        if not self._shared("pid") and self._bait.pid <= os.getpid():
            return False
        return works(lambda: os.kill(self._bait.pid, 0))

    def _read_memory(self) -> bool:
        size = len(self._bait.secret)
        found = ctypes.create_string_buffer(size)
        here = (ctypes.c_uint64 * 2)(ctypes.addressof(found), size)
        there = (ctypes.c_uint64 * 2)(self._bait.address, size)
        with contextlib.suppress(OSError, KeyError):
            number = NUMBERS[platform.machine()]["process_vm_readv"]
            system_call(number, self._bait.pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        with contextlib.suppress(OSError), Path(f"/proc/{self._bait.pid}/mem").open("rb") as memory:
            memory.seek(self._bait.address)
            found.raw = memory.read(size)
        return found.raw == self._bait.secret.encode()

    def _change_mode(self) -> bool:
        folder = self._scratch.parent
        return works(lambda: folder.chmod(folder.stat().st_mode))

    def _tmp(self) -> bool:
        return any(
            Path(path).stat().st_dev == device or _size(path) > 2 * 2**30
            for path, device in self._bait.devices.items()
        )

    def _processes(self) -> bool:
        seen = {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()}
        return bool(seen - {1, os.getpid()})

    def _root(self) -> bool:
        return (
            works(lambda: os.setuid(0))
            or works(lambda: os.setgid(0))
            or self._opens(OF_THE_OWNER, os.O_RDONLY)
        )

    def _capabilities(self) -> bool:
        status = Path("/proc/self/status").read_text()
        (effective,) = (line for line in status.splitlines() if line.startswith("CapEff"))
        return int(effective.split()[1], 16) != 0 or works(
            lambda: mount("tmpfs", str(self._scratch), "tmpfs", MS_NODEV)
        )

    def _orphan(self) -> bool:
        number = ctypes.c_int()
        prctl(PR_GET_PDEATHSIG, ctypes.addressof(number))
        return number.value != signal.SIGKILL

    def _environment(self) -> bool:
        return not set(os.environ) <= {*ENVIRONMENT, *clean_environment(self._scratch)}

    def _limits(self) -> bool:
        for which in (
            resource.RLIMIT_CPU,
            resource.RLIMIT_FSIZE,
            resource.RLIMIT_NPROC,
            resource.RLIMIT_NOFILE,
        ):
            hard = resource.getrlimit(which)[1]
            if hard == resource.RLIM_INFINITY or works(
                partial(resource.setrlimit, which, (hard + 1, hard + 1))
            ):
                return True
        largest = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        with (self._scratch / "too_large").open("wb") as file:
            return works(lambda: os.pwrite(file.fileno(), b"x", largest))

    def _memory(self) -> bool:
        assert self._memory_bytes is not None
        # What was mapped when the limit was set may have become less since then.
        size = self._memory_bytes + _GIVEN_BACK
        # It must be the limit that refuses, not a kernel that hasn't so much to give.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        return works(lambda: mmap.mmap(-1, size, flags=flags))

    def _files(self) -> bool:
        return self._opens(OPEN_TO_ALL, os.O_RDONLY) or self._opens(
            "written", os.O_WRONLY | os.O_CREAT
        )

    def _opens(self, name: str, flags: int) -> bool:
        return works(lambda: os.close(os.open(name, flags, dir_fd=self._folder)))

    def _listen(self) -> bool:
        def listen() -> None:
            with socket.socket() as server:
                server.bind(("0.0.0.0", 0))

        return works(listen)

    def _leave_outsider(self) -> None:
        """A process with the same rights, and without the walls that are still to come."""
        waits, ends = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(ends)
            os.read(waits, 1)
            os._exit(0)
        os.close(waits)
        self._outsider = pid, ends

    def _signal_outside(self) -> bool:
        assert self._outsider is not None
        pid = self._outsider[0]
        return works(lambda: os.kill(pid, 0))

    def _system_calls(self) -> bool:
        numbers = NUMBERS[platform.machine()]
        refused = [_error_of(numbers[name], -1) for name in DENIED if name in numbers]
        return (
            any(number != errno.EPERM for number in refused)
            or _error_of(numbers["unshare"], 0) != errno.EPERM
            or _error_of(numbers["clone"], CLONE_NEWUSER | _CONTRADICTION) != errno.EPERM
            or _error_of(numbers["clone3"], 0) != errno.ENOSYS
            or works(lambda: socket.socket().close())
        )


def _connect(family: socket.AddressFamily, address: tuple[str, int] | str) -> None:
    with socket.socket(family) as client:
        client.settimeout(0.1)
        client.connect(address)


def works(attack: Callable[[], object]) -> bool:
    try:
        attack()
    except (OSError, ValueError):
        return False
    return True


def _error_of(number: int, argument: int) -> int:
    try:
        system_call(number, argument, 0, 0, 0, 0, 0)
    except OSError as error:
        return error.errno or 0
    return 0


def _size(path: str) -> int:
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize
