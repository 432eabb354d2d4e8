"""The NVIDIA driver's management library: asks about GPUs without a CUDA context."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from types import ModuleType


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
