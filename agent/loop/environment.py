"""Where a run is made: versions, commit and device, for its record."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from agent.prompt.section import LIMITS
from agent.record.result import ProblemResult
from agent.record.store import RunStore
from problems.errors import UsageError

PACKAGES = (
    "kernel-refinery",
    "torch",
    "triton",
    "langgraph",
    "litellm",
    "pydantic",
    "numpy",
    "ray",
)
CHANGED = "+changes"
"""Follows the commit where tracked files differ from it."""
_GIT_TIMEOUT_S = 10.0
_AND = " and "


def refuse_other_device(store: RunStore, device_name: str) -> None:
    """Raise `UsageError` where the run was begun on another device: figures of two devices in one
    run would be compared as if they were of one."""
    before = store.environment().get("device")
    if before is not None and before != device_name:
        raise UsageError(
            f"{store.path} was begun on {before}, and this device is {device_name}; choose another"
            " folder with -o, or start over with --redo"
        )


def record_environment(store: RunStore, device_name: str, executor: str) -> None:
    """Write `environment.json` before turns are made: versions as they are now.

    `commit` is of the checkout that this program runs from; None where it is in none; `A and B`
    where the run was begun with A and goes on with B.
    """
    commits = str(store.environment().get("commit") or "").split(_AND)
    commits.append(revision() or "")
    store.add_environment(
        {
            "commit": _AND.join(dict.fromkeys(filter(None, commits))) or None,
            "device": device_name,
            "executor": executor,
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "packages": {name: version for name in PACKAGES if (version := _version(name))},
            "prompt_limits": asdict(LIMITS),
        }
    )


def record_isolation(store: RunStore, results: Sequence[ProblemResult]) -> None:
    """Add the layers of isolation that the workers had, as the last evaluations tell them."""
    last = [result.last for result in results if result.last is not None]
    layers = [turn.evaluation.isolation for turn in last if turn.evaluation.isolation]
    if layers:
        store.add_environment({"isolation": list(layers[-1])})


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def revision(root: Path | None = None) -> str | None:
    """`3f2a91c07be4`, or `3f2a91c07be4+changes`; None where `root` (by default the folder above
    our packages) is not the top of a git checkout, or git fails."""
    top = (root or Path(__file__).parents[2]).resolve()
    found = _git(top, "rev-parse", "--show-toplevel")
    # An installed copy may lie inside another checkout, whose commit says nothing of this program.
    if found is None or Path(found).resolve() != top:
        return None
    commit = _git(top, "rev-parse", "--short=12", "HEAD")
    changes = _git(top, "status", "--porcelain", "--untracked-files=no")
    if not commit or changes is None:
        return None
    return commit + CHANGED if changes else commit


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints; None where it is missing, fails or hangs."""
    git = shutil.which("git")
    if git is None:
        return None
    # Inside a hook these name another repository.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            [git, "--no-optional-locks", "-C", str(folder), *arguments],
            env=clean,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
