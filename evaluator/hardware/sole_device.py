"""A process that sees one GPU and no other: whichever it is, there it is `cuda:0`.

So a kernel that says `cuda:0` is judged alike on every device, and none reaches a device on which
another one is being timed.
"""

from __future__ import annotations

import os

from evaluator.hardware.devices import list_gpus
from evaluator.hardware.nvml import device_index

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def see_only(device: str) -> str:
    """Hide all other GPUs from this process and those that it starts; what to call `device` then.

    Must come before CUDA is first used here. Where there is one GPU, or `device` is `cpu`, nothing
    is changed.
    """
    gpus = list_gpus() if device != "cpu" else []
    if len(gpus) < 2:
        return device
    # By its UUID, since CUDA may count the devices in another order than the driver does.
    os.environ[_VISIBLE] = gpus[device_index(device)].uuid
    return "cuda:0"


def see_none() -> None:
    os.environ[_VISIBLE] = ""
