"""Which devices `auto`, `all`, `cpu` or `cuda:0,1` means here; without torch or a context."""

from __future__ import annotations

import re
from importlib import metadata

from evaluator.hardware.devices import DeviceInfo, list_gpus
from problems.errors import UsageError

FORMS = "auto, all, cpu, cuda, cuda:N or cuda:N,M"
_FORM = re.compile(r"auto|all|cpu|cuda|cuda:\d+(?:,(?:cuda:)?\d+)*")


def is_device_choice(text: str) -> bool:
    return _FORM.fullmatch(text) is not None


def resolve_device(asked: str) -> str:
    """`cpu` or `cuda:N`: as `resolve_devices`, for work that takes one device."""
    first, *others = resolve_devices(asked)
    if others:
        raise UsageError(f"--device {asked}: this takes one device; use --device {first}")
    return first


def resolve_devices(asked: str, *, prefer_gpu: bool = True) -> tuple[str, ...]:
    """`("cpu",)`, or `cuda:N` of one kind of GPU, each once, in the order asked for.

    `auto` is the first GPU if there is one that the installed torch can use and `prefer_gpu` says
    so, else the CPU; `all` is every GPU. Raises `UsageError` for GPUs that are not there, that
    torch can't use, or of several kinds: the times of one run are compared.
    """
    if not is_device_choice(asked):
        raise UsageError(f"--device {asked}: give {FORMS}")
    if asked == "cpu":
        return ("cpu",)
    gpus = list_gpus()
    build = _torch_build()
    usable = bool(gpus) and not build.endswith("+cpu")
    if asked == "auto":
        return ("cuda:0",) if usable and prefer_gpu else ("cpu",)
    if not gpus:
        raise UsageError(f"--device {asked}: no GPU is visible here; use --device cpu")
    if not usable:
        raise UsageError(
            f"--device {asked}: the installed torch {build} knows no CUDA; install a CUDA build of "
            "it, or use --device cpu"
        )
    named = [int(digits) for digits in re.findall(r"\d+", asked)] or [0]
    indices = range(len(gpus)) if asked == "all" else list(dict.fromkeys(named))
    if max(indices) >= len(gpus):
        raise UsageError(f"--device {asked}: the GPUs here are cuda:0 to cuda:{len(gpus) - 1}")
    kinds = by_name([(index, gpus[index]) for index in indices])
    if len(kinds) > 1:
        choices = ", ".join(f"--device {choice} ({name})" for name, choice in kinds.items())
        raise UsageError(
            f"--device {asked}: the times of one run are compared, and these GPUs differ; use one"
            f" of {choices}"
        )
    return tuple(f"cuda:{index}" for index in indices)


def by_name(gpus: list[tuple[int, DeviceInfo]]) -> dict[str, str]:
    """What to give as `--device` for all GPUs of a name: `cuda:0,2`."""
    indices: dict[str, list[str]] = {}
    for index, gpu in gpus:
        indices.setdefault(gpu.name, []).append(str(index))
    return {name: f"cuda:{','.join(found)}" for name, found in indices.items()}


def _torch_build() -> str:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""
