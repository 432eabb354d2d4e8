"""One device, one measurement at a time, across processes and users of a host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from evaluator.hardware.devices import DeviceInfo, describe
from evaluator.hardware.host_lock import host_lock

_MOST_TURNS_S = 2.0
"""Several times what a context takes on each GPU of a host."""


def _identity(device: str) -> str:
    """What names the physical device, whatever CUDA_VISIBLE_DEVICES makes of its index."""
    if device == "cpu":
        return "cpu"
    return describe(device).uuid


def _file_name(identity: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "_", identity)


@contextmanager
def device_lock(device: str) -> Iterator[None]:
    """Hold a device alone; waits until it is free. `device` is `cpu` or `cuda:N`."""
    with host_lock(_file_name(_identity(device))):
        yield


@contextmanager
def device_lock_if_free(device: str) -> Iterator[bool]:
    """Hold a device alone if nobody has it just now; tells whether it is held."""
    with host_lock(_file_name(_identity(device)), most_s=0.0) as held:
        yield held


@contextmanager
def ncu_lock(device: DeviceInfo) -> Iterator[None]:
    """One Nsight Compute at a time profiles on a device: of two some were seen to end with 9.

    Others may be there that wait for a request, or profile on another device.
    """
    with host_lock(f"ncu-{_file_name(device.uuid or device.name)}"):
        yield


@contextmanager
def context_turn() -> Iterator[None]:
    """Lets one judge of this host at a time make a CUDA context.

    The driver makes them one after the other, for all GPUs. In turns, one judge makes its context
    while the others time. A judge that has waited for long goes ahead all the same.
    """
    with host_lock("context", most_s=_MOST_TURNS_S):
        yield
