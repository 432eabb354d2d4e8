"""Removing a folder that a candidate could fill.

`shutil.rmtree` gives up on folders that lie deeper than Python may recurse, or than a process may
have files open.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
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
        _flatten(folder)
        folder.rmdir()


def _flatten(folder: Path) -> None:
    folder.chmod(0o700)
    while inside := list(folder.iterdir()):
        for path in inside:
            if not _is_folder(path):
                path.unlink()
                continue
            path.chmod(0o700)
            for below in list(path.iterdir()):
                if _is_folder(below):
                    # Who isn't root can't move it otherwise.
                    below.chmod(0o700)
                below.rename(folder / secrets.token_hex(16))
            path.rmdir()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
