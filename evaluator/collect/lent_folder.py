"""A folder for temporary files that a candidate may own meanwhile: it goes, whatever it became.

`shutil.rmtree` gives up on folders that lie deeper than Python may recurse, or than a process may
have files open.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def lent_folder(prefix: str) -> Iterator[Path]:
    """A new one, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        remove(folder)


def remove(folder: Path) -> None:
    """As far as that can be; nothing is raised. Nobody may be writing there any more."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
        return
    with contextlib.suppress(OSError):
        _flatten(folder)
        folder.rmdir()


def _flatten(folder: Path) -> None:
    """What lies in its folders comes up, one step at a time, until nothing is left."""
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
