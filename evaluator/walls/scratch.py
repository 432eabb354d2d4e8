"""Removing a folder that a candidate could fill.

`shutil.rmtree` gives up on folders that lie deeper than Python may recurse, or than a process may
have files open, and on those that are shut to their owner: `chmod` and `rm` don't.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it, as far as that can be; nothing is raised.

    Nobody may be writing there any more. No link is followed, not even one in the folder's place.
    """
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
        return
    with contextlib.suppress(OSError):
        if folder.is_symlink():
            folder.unlink()
            return
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, str(folder)], capture_output=True, check=False)
