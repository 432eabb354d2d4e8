"""A GPU that is not there, as far as a candidate asks about it to choose what it builds.

Only where a candidate is rehearsed. A worker in which it is judged has the GPU itself.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch

from evaluator.hardware.devices import DeviceInfo
from evaluator.hardware.published import KIB, REGISTERS_PER_SM, THREADS_PER_SM

Properties = dict[str, str | int]
"""What is known of `torch.cuda.get_device_properties`, by PyTorch's names; sizes in bytes."""


def properties_of(gpu: DeviceInfo) -> Properties:
    """What can be said of a GPU without CUDA. What is not known is left out.

    `total_memory` is the driver's figure, of which CUDA keeps some for itself.
    """
    major, minor = gpu.compute_capability
    known: Properties = {
        "name": gpu.name,
        "multi_processor_count": gpu.sms,
        "total_memory": gpu.memory_bytes,
        "L2_cache_size": gpu.l2_bytes,
        "shared_memory_per_block": 48 * KIB,
        "shared_memory_per_block_optin": gpu.shared_memory[1],
        "shared_memory_per_multiprocessor": gpu.shared_memory[0],
        "regs_per_multiprocessor": REGISTERS_PER_SM,
        "max_threads_per_multi_processor": THREADS_PER_SM.get(gpu.compute_capability, 2048),
        "warp_size": 32,
    }
    known = {name: value for name, value in known.items() if value}
    return known | {"major": major, "minor": minor}


def state(properties: Properties) -> None:
    """Have `torch.cuda` answer questions about its devices so. What uses a device still raises."""
    stated = SimpleNamespace(**properties)

    answers = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_properties": lambda device=None: stated,
        "get_device_capability": lambda device=None: (stated.major, stated.minor),
        "get_device_name": lambda device=None: stated.name,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
