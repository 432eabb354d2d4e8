"""The survey with one wall left out that says it stands: `python sabotaged_survey.py WALL`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from evaluator.walls import (
    landlock,
    layers,
    limits,
    mounts,
    namespaces,
    privileges,
    seccomp,
    survey,
)


def nothing(*_: object, **__: object) -> None:
    """Stands where a wall should be put up."""


def without_walls() -> None:
    for wall, sabotage in SABOTAGE.items():
        if wall != "judge_out_of_reach":
            sabotage()


SABOTAGE: dict[str, Callable[[], None]] = {
    "seccomp": lambda: setattr(seccomp, "install", nothing),
    "landlock": lambda: setattr(
        landlock, "restrict", lambda *_, **__: ["landlock", "landlock_scope"]
    ),
    "homes_hidden": lambda: setattr(mounts, "hide_homes", nothing),
    "read_only": lambda: setattr(mounts, "make_read_only", nothing),
    "own_tmp": lambda: setattr(mounts, "own_temporary_folders", nothing),
    "own_proc": lambda: setattr(mounts, "own_proc", nothing),
    "network_namespace": lambda: setattr(
        namespaces, "own_namespaces", lambda: list(namespaces.NAMESPACES)
    ),
    "rlimits": lambda: setattr(limits, "limit", nothing),
    "dies_with_parent": lambda: setattr(privileges, "die_with_parent", nothing),
    "clean_environment": lambda: setattr(layers, "clean_environment", lambda _: {"API_KEY": "x"}),
    "no_capabilities": lambda: (
        setattr(privileges, "become_nobody", lambda *_: "own_uid")
        or setattr(privileges, "drop_capabilities", nothing)
    ),
    "judge_out_of_reach": without_walls,
}

if __name__ == "__main__":
    SABOTAGE[sys.argv[1]]()
    survey.main()
