"""Removing a folder that a candidate could fill."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it, however deep it is; what can't be removed stays."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
    if folder.exists():
        # Python's function needs a descriptor and a frame for each level.
        subprocess.run(["rm", "-rf", "--", str(folder)], stderr=subprocess.DEVNULL, check=False)
