"""Which device `auto`, `cpu`, `cuda` or `cuda:N` means here; without torch or a context."""

from __future__ import annotations

import re
from importlib import metadata

from evaluator.devices import list_gpus
from problems.errors import UsageError


def resolve_device(asked: str, *, prefer_gpu: bool = True) -> str:
    """`cpu` or `cuda:N`. Raises `UsageError` for a GPU that is not there or that torch can't use.

    `auto` is the first GPU if there is one that the installed torch can use and `prefer_gpu` says
    so, else the CPU.
    """
    if asked == "cpu":
        return asked
    match = re.fullmatch(r"auto|cuda(?::(\d+))?", asked)
    if match is None:
        raise UsageError(f"--device {asked}: give auto, cpu, cuda or cuda:N")
    gpus = list_gpus()
    build = _torch_build()
    usable = bool(gpus) and not build.endswith("+cpu")
    if asked == "auto":
        return "cuda:0" if usable and prefer_gpu else "cpu"
    if not gpus:
        raise UsageError(f"--device {asked}: no GPU is visible here; use --device cpu")
    if not usable:
        raise UsageError(
            f"--device {asked}: the installed torch {build} knows no CUDA; install a CUDA build of "
            "it, or use --device cpu"
        )
    index = int(match[1] or 0)
    if index >= len(gpus):
        raise UsageError(f"--device {asked}: the GPUs here are cuda:0 to cuda:{len(gpus) - 1}")
    return f"cuda:{index}"


def _torch_build() -> str:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""
