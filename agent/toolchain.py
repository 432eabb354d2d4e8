"""What a backend needs of this machine, found without importing or starting any of it."""

from __future__ import annotations

import importlib.metadata
import importlib.util

from evaluator.builder.toolchain import cxx_compiler, nvcc_compiler
from evaluator.evaluation import Backend


def torch_version() -> str | None:
    """Version of the installed torch, with its build tag (`2.13.0+cpu`); None without torch."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


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
