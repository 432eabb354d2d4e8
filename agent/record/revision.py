"""The commit of the checkout that this program runs from, for the record of a run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

CHANGED = "+changes"
"""Follows the commit where tracked files differ from it."""
_TIMEOUT_S = 10.0


def revision(root: Path | None = None) -> str | None:
    """`3f2a91c07be4`, or `3f2a91c07be4+changes`; None where `root` (by default the folder above
    our packages) is not the top of a git checkout, or git can't tell."""
    top = (root or Path(__file__).parents[2]).resolve()
    found = _git(top, "rev-parse", "--show-toplevel")
    # An installed copy may lie inside somebody else's checkout, whose commit says nothing of us.
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
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
