"""Compilers and builds that a backend needs, found without importing or starting any of them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
from pathlib import Path

from evaluator.evaluation import Backend

USUAL_NVCC = Path("/usr/local/cuda/bin/nvcc")
"""Where NVIDIA's packages put it, often without adding it to the path."""


def torch_version() -> str | None:
    """Version of the installed torch, with its build tag (`2.13.0+cpu`); None without torch."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def cxx_compiler() -> str | None:
    """Path of the C++ compiler: `$CXX`, else g++, else c++; None where there is none."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "c++"]
    return next((path for name in names if (path := shutil.which(name))), None)


def nvcc_compiler() -> str | None:
    """Path of nvcc: under `$CUDA_HOME` or `$CUDA_PATH`, on the path, or under /usr/local/cuda."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    for home in (Path(home) for home in homes if home):
        if (home / "bin" / "nvcc").exists():
            return str(home / "bin" / "nvcc")
    return shutil.which("nvcc") or (str(USUAL_NVCC) if USUAL_NVCC.exists() else None)


def missing_for(backend: Backend) -> str | None:
    """What `backend` needs and this machine lacks, with the remedy; None where nothing is."""
    if backend is Backend.TRITON:
        if importlib.util.find_spec("triton") is None:
            return "no triton here: it comes with torch for CUDA (pip install triton)"
        return None
    if cxx_compiler() is None:
        return "no C++ compiler found: install g++ (apt install g++), or set CXX"
    if backend is Backend.CUDA and nvcc_compiler() is None:
        return "no nvcc found: install the CUDA toolkit and set CUDA_HOME, or use --backend triton"
    return None
