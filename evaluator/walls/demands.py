"""What `isolation: strict` asks for, and how a machine comes by what it lacks."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from evaluator.errors import IsolationError
from evaluator.walls.memory_group import LAYER as MEMORY_GROUP
from evaluator.walls.probe import JUDGE_OUT_OF_REACH

NAMESPACES = (
    "mount_namespace",
    "homes_hidden",
    "network_namespace",
    "ipc_namespace",
    "pid_namespace",
    "read_only",
    "own_tmp",
    "own_proc",
)
"""Layers that are made of namespaces, and need the right to make them."""
STRICT = (
    *NAMESPACES,
    "no_capabilities",
    "no_new_privs",
    "dies_with_parent",
    "rlimits",
    "clean_environment",
    "landlock",
    "seccomp",
    JUDGE_OUT_OF_REACH,
)
"""All that must have been tried and have held, with one of `IDENTITIES`."""
BESIDES = ("uts_namespace", "memory_limit", MEMORY_GROUP, "landlock_network", "landlock_scope")
"""Good to have; what they take away another layer takes away as well, or a GPU can't do with."""
IDENTITIES = ("own_uid", "uid_nobody", "user_namespace")
COMPILER = "compiler: "
STRICT_COMPILER = tuple(
    COMPILER + layer for layer in ("own file system", "no network", "landlock", "seccomp")
)


def missing(layers: Collection[str], wanted: Collection[str] = STRICT) -> tuple[str, ...]:
    lacking = tuple(layer for layer in wanted if layer not in layers)
    if wanted is STRICT and (who := identity(layers)) not in layers:
        return (who, *lacking)
    return lacking


def insist(worker: Collection[str], compilers: Collection[str]) -> None:
    """Raise `IsolationError` unless every wall of strict isolation is active."""
    lacking = missing(worker, STRICT) + missing(compilers, STRICT_COMPILER)
    if lacking:
        raise IsolationError(rejection(lacking))


def identity(layers: Collection[str]) -> str:
    """The layer that says who a worker is: the active one, else the one available here."""
    usual = IDENTITIES[0] if os.geteuid() == 0 else IDENTITIES[-1]
    return next((layer for layer in IDENTITIES if layer in layers), usual)


def remedy(layer: str) -> str:
    name = layer.removeprefix(COMPILER)
    if name.startswith("landlock"):
        return "a kernel with Landlock (5.13, network 6.7, signals 6.12), and landlock in its lsm="
    if name == "seccomp":
        return "a kernel with CONFIG_SECCOMP_FILTER on x86_64 or aarch64"
    if name == MEMORY_GROUP:
        return "run as root where /sys/fs/cgroup can be written and accounts for memory"
    if name in ("own_uid", "uid_nobody"):
        return "run the container with the capabilities SETUID, SETGID and CHOWN"
    if name in (*NAMESPACES, "user_namespace", "uts_namespace", "own file system", "no network"):
        return _namespaces()
    return "it is in reach of a candidate here: use a machine that you can afford to lose"


def _namespaces() -> str:
    if os.geteuid() == 0:
        return "run the container with --cap-add SYS_ADMIN --security-opt seccomp=unconfined"
    if Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").exists():
        return "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as root"
    return "allow user namespaces (sysctl user.max_user_namespaces=10000), or run as root"


def rejection(lacking: Collection[str], option: str = "--require-isolation strict") -> str:
    remedies = dict.fromkeys(remedy(layer) for layer in lacking)
    return (
        f"strict isolation is not to be had here: {', '.join(lacking)} missing; "
        f"{'; '.join(remedies)}; or leave out {option}"
    )
