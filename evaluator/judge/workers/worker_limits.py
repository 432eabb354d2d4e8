"""What a worker may use up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_CPU_SECONDS = 3600


@dataclass(frozen=True)
class WorkerLimits:
    """Limits of one worker, put up before it runs anything of a candidate's."""

    memory_bytes: int | None
    """Of the address space of each process. None on a GPU: CUDA reserves far more than it uses."""
    cpu_seconds: int
    """Of processor time, for each process."""
    family_bytes: int | None = None
    """Of the memory of the worker and all that it starts together, where the system allows it."""


def worker_limits(device: torch.device, memory_bytes: int | None) -> WorkerLimits:
    """For a worker that may use so much memory together with all that it starts."""
    return WorkerLimits(
        memory_bytes=memory_bytes if device.type == "cpu" else None,
        cpu_seconds=_CPU_SECONDS,
        family_bytes=memory_bytes,
    )
