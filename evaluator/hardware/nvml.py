"""The NVIDIA driver's management library: asks about GPUs without a CUDA context."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

_DEVICES = Path("/dev")


def device_index(device: str) -> int:
    """N of `cuda:N`; 0 for `cuda`."""
    return int(device.partition(":")[2] or 0)


@contextlib.contextmanager
def nvml_library() -> Iterator[ModuleType | None]:
    """The driver's management library while in use; None where there is no driver."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except ImportError:
        yield None
        return
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def nvml_handles(nvml: ModuleType) -> list[object]:
    """Handles in the order in which CUDA counts the devices."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = int(nvml.nvmlDeviceGetCount())
    if visible is None:
        return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    handles: list[object] = []
    for entry in filter(None, (part.strip() for part in visible.split(","))):
        try:
            if not entry.lstrip("-").isdigit():
                handles.append(nvml.nvmlDeviceGetHandleByUUID(entry.encode()))
            elif 0 <= int(entry) < count:
                handles.append(nvml.nvmlDeviceGetHandleByIndex(int(entry)))
            else:
                break
        except nvml.NVMLError:
            break
    return handles


def hidden_device_files() -> list[Path]:
    """Files of the GPUs that `CUDA_VISIBLE_DEVICES` hides by naming others' UUIDs.

    CUDA opens them all the same, which takes a quarter of the time in which it starts.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if not all(entry.strip().startswith("GPU-") for entry in visible.split(",")):
        # What a number means depends on CUDA's order, and a part of a GPU has no file of its own.
        return []
    with nvml_library() as nvml:
        if nvml is None:
            return []
        try:
            seen = {int(nvml.nvmlDeviceGetMinorNumber(handle)) for handle in nvml_handles(nvml)}
        except nvml.NVMLError:
            return []
    files = {int(path.name.removeprefix("nvidia")): path for path in _DEVICES.glob("nvidia[0-9]*")}
    return [path for minor, path in sorted(files.items()) if seen and minor not in seen]
