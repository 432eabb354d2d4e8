"""The light headers: ours in front of PyTorch's, under the names that candidates include.

`light/*.h` are the headers, `light/*.cpp` what they rest on, compiled once a machine and linked
into every library. A candidate that needs more than they offer is compiled with PyTorch's own.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

from evaluator.builder.work_folder import work_folder

SOURCES = Path(__file__).parent / "light"
RUNTIME = ("runtime.cpp", "runtime_python.cpp", "binding.cpp")

_SHADOWED = {
    "extension.h": (
        "torch/extension.h",
        "torch/python.h",
        "pybind11/pybind11.h",
        "pybind11/stl.h",
    ),
    "types.h": (
        "ATen/ATen.h",
        "ATen/Dispatch.h",
        "ATen/Functions.h",
        "ATen/Parallel.h",
        "ATen/ParallelOpenMP.h",
        "ATen/Tensor.h",
        "ATen/TensorUtils.h",
        "ATen/core/Tensor.h",
        "ATen/core/TensorBase.h",
        "ATen/core/TensorAccessor.h",
        "c10/core/Device.h",
        "c10/core/DeviceType.h",
        "c10/core/MemoryFormat.h",
        "c10/core/Scalar.h",
        "c10/core/ScalarType.h",
        "c10/core/TensorOptions.h",
        "c10/util/ArrayRef.h",
        "c10/util/Exception.h",
        "c10/util/Optional.h",
        "torch/types.h",
    ),
    "all.h": ("torch/all.h", "torch/torch.h"),
    "accumulate.h": ("ATen/AccumulateType.h",),
    "cuda_context.h": (
        "ATen/cuda/CUDAContext.h",
        "ATen/cuda/CUDAContextLight.h",
        "ATen/cuda/CUDAUtils.h",
        "ATen/cuda/Exceptions.h",
    ),
    "cuda_guard.h": ("c10/cuda/CUDAGuard.h",),
    "cuda_stream.h": (
        "c10/cuda/CUDAException.h",
        "c10/cuda/CUDAMacros.h",
        "c10/cuda/CUDAStream.h",
    ),
}


def digest() -> str:
    total = hashlib.sha256(repr(_SHADOWED).encode())
    for path in sorted(SOURCES.iterdir()):
        if path.suffix in (".h", ".cpp"):
            total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def install(cache: Path) -> Path:
    """The folder to search first for headers, made once per version of them under `cache`."""
    folder = cache / f"headers-{digest()}"
    if not folder.exists():
        _make(folder)
    return folder


def _make(folder: Path) -> None:
    with work_folder(folder.parent) as work:
        made = work / "headers"
        for header, names in _SHADOWED.items():
            for name in names:
                path = made / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"#pragma once\n#include <refinery/{header}>\n")
        (made / "refinery").mkdir()
        for source in SOURCES.iterdir():
            if source.suffix in (".h", ".cpp"):
                (made / "refinery" / source.name).write_bytes(source.read_bytes())
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():
                raise


@cache
def macros() -> frozenset[str]:
    found: set[str] = set()
    for path in SOURCES.glob("*.h"):
        found.update(re.findall(r"^#define (\w+)", path.read_text(), re.MULTILINE))
    return frozenset(found)
