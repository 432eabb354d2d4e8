"""Programs of the CUDA toolkit and of binutils, and what they print about a library."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_TOOLKIT = Path("/usr/local/cuda")


def find_tool(name: str) -> Path | None:
    """On the path, of the toolkit or of Nsight Compute; else None."""
    found = shutil.which(name)
    if found:
        return Path(found)
    toolkits = [os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH")]
    folders = [Path(toolkit) / "bin" for toolkit in toolkits if toolkit]
    folders.append(_TOOLKIT / "bin")
    folders += sorted(Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True)
    places = (folder / name for folder in folders)
    return next((place for place in places if place.is_file()), None)


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
