"""Packages that only some formats need: the extras of pyproject.toml."""

from __future__ import annotations

from importlib.util import find_spec

from problems.errors import UsageError


def need(module: str, extra: str, what: str) -> None:
    """Raise `UsageError` where `module`, a top-level package, is not installed.

    `extra` names the extra that brings it, `what` the command that needs it.
    """
    if find_spec(module) is None:
        raise UsageError(f"{what} needs {module}: pip install 'kernel-refinery[{extra}]'")
