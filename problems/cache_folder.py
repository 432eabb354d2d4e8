"""Where built libraries, measured ceilings and data sets of problems are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """`KERNEL_REFINERY_CACHE`, else `kernel-refinery` in the user's cache folder."""
    chosen = os.environ.get("KERNEL_REFINERY_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kernel-refinery"
