"""Where built libraries and measured ceilings are kept between runs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from problems.errors import UsageError
from problems.plain_file import write_plain


def cache_folder() -> Path:
    """`KERNEL_REFINERY_CACHE`, else `kernel-refinery` in the user's cache folder."""
    chosen = os.environ.get("KERNEL_REFINERY_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernel-refinery"


def keep(path: Path, text: str) -> None:
    """Write a file of the cache folder, whole or not at all, in place of an earlier one.

    In a home that is read-only nothing is kept.
    """
    with contextlib.suppress(OSError, UsageError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_plain(path, text)
