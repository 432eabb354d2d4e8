"""Where programs of the CUDA toolkit are on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

_TOOLKIT = Path("/usr/local/cuda")


def find_tool(name: str) -> Path | None:
    """On the path, of the toolkit, of Nsight Compute, or of what comes with Triton; else None."""
    found = shutil.which(name)
    if found:
        return Path(found)
    toolkits = [os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH")]
    folders = [Path(toolkit) / "bin" for toolkit in toolkits if toolkit]
    folders.append(_TOOLKIT / "bin")
    folders += sorted(Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True)
    triton = importlib.util.find_spec("triton")
    if triton is not None and triton.origin:
        folders.append(Path(triton.origin).parent / "backends" / "nvidia" / "bin")
    places = (folder / name for folder in folders)
    return next((place for place in places if place.is_file()), None)
