"""Landlock: which files a process may read and write, whatever its uid and its mounts allow.

It needs no privilege, so it holds where namespaces are forbidden (containers, above all).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

from evaluator.walls.kernel import system_call

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE, _DEVICE_IOCTL = 1 << 13, 1 << 14, 1 << 15
_READ = _READ_FILE | _READ_DIR
_ON_FILES = _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_IOCTL
_TCP_BIND_AND_CONNECT = 0b11
_SIGNALS_AND_ABSTRACT_SOCKETS = 0b11
_DEVICES = (
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
    "/dev/nvidia*", "/dev/nvidia-caps/*", "/dev/nvidia-caps-imex-channels/*", "/dev/dri/*",
    "/dev/dxg", "/dev/kfd",
)  # fmt: skip


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def restrict(
    readable: Iterable[Path], writable: Iterable[Path], *, listed: Iterable[Path] = ()
) -> list[str]:
    """Allow this thread, and all that it starts, these folders and no others, for good.

    In folders that are `listed`, names can be seen and nothing be read: imports need that.
    Needs no_new_privs. The names of the layers that this kernel's version of it has; raises
    `OSError` where it has none. Device nodes of GPUs stay open.
    """
    known = system_call(_CREATE, 0, 0, _VERSION)
    files = _WRITE_FILE | _READ | _MAKE_AND_REMOVE
    if known >= 2:
        files |= _REFER
    if known >= 3:
        files |= _TRUNCATE
    if known >= 5:
        files |= _DEVICE_IOCTL
    attributes = _Ruleset(
        files,
        _TCP_BIND_AND_CONNECT if known >= 4 else 0,
        _SIGNALS_AND_ABSTRACT_SOCKETS if known >= 6 else 0,
    )
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    rules = system_call(_CREATE, ctypes.byref(attributes), size, 0)
    try:
        for folder in readable:
            _allow(rules, folder, files & _READ)
        for folder in listed:
            _allow(rules, folder, _READ_DIR)
        for folder in writable:
            _allow(rules, folder, files)
        for pattern in _DEVICES:
            for node in Path("/").glob(pattern[1:]):
                _allow(rules, node, files)
        system_call(_RESTRICT, rules, 0)
    finally:
        os.close(rules)
    layers = ["landlock"]
    if known >= 4:
        layers.append("landlock_network")
    if known >= 6:
        layers.append("landlock_scope")
    return layers


def _allow(rules: int, path: Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        # What can't be reached needs no permission.
        return
    try:
        if not path.is_dir():
            rights &= _ON_FILES
        rule = _PathBeneath(rights, handle)
        system_call(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(handle)
