"""What programs of binutils print about a library."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def printed_by(program: str, library: Path, *options: str, timeout_s: float) -> str | None:
    """Its output; None where it is not installed, takes too long or doesn't understand the file."""
    found = shutil.which(program)
    if found is None:
        return None
    try:
        done = subprocess.run(
            [found, *options, str(library)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None
