"""How much of the device's memory a worker holds, as the system counts it and not the worker."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from evaluator.hardware.kernel_files import read_text


class WorkerMemory:
    """What one worker holds on its device beyond what it held when this was made.

    On a GPU this is what its process has reserved there: its weights, what PyTorch's allocator
    keeps for its calls, workspaces of libraries and loaded kernels. Memory that a candidate frees
    within a call without PyTorch's allocator is not seen. Make it once the worker has its context,
    and while nothing else comes or goes on the device. On a CPU it is the largest resident set.
    """

    def __init__(self, device: torch.device, pid: int, held_bytes: int = 0) -> None:
        """`held_bytes`: what counts of what it holds already."""
        self._device = device
        self._pid = pid
        before = self._held_bytes()
        self._before = None if before is None else before - held_bytes

    def most_bytes(self, slot_bytes: int = 0) -> int | None:
        """The most so far, without the slot for outputs; None where the system does not say."""
        now = self._held_bytes(most=True)
        if now is None or self._before is None:
            return None
        return max(0, now - self._before - (slot_bytes if self._device.type == "cuda" else 0))

    def _held_bytes(self, *, most: bool = False) -> int | None:
        if self._device.type == "cuda":
            free, total = torch.cuda.mem_get_info(self._device)
            return int(total - free - torch.cuda.memory_reserved(self._device))
        name = "VmHWM" if most else "VmRSS"
        status = read_text(Path(f"/proc/{self._pid}/status"))
        found = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
        return 1024 * int(found[1]) if found else None
