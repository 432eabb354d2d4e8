"""Pushes everything else out of the caches before a call that is timed."""

from __future__ import annotations

from functools import cache

import torch

from evaluator.hardware.cuda_memory import reset_persisting_l2
from evaluator.hardware.devices import cache_bytes
from evaluator.judge.context.judge_memory import JudgeMemory


class CacheFlush:
    def __init__(self, device: torch.device, memory: JudgeMemory) -> None:
        self.tensor = _host_tensor() if device.type == "cpu" else _tensor(device)
        self.persisting_l2_reset: bool | None = None
        """Whether the last flush could reset them; None on a CPU and before the first."""
        self._device = device
        self._memory = memory

    def run(self) -> None:
        """Flush; waits until that is done on a GPU.

        A kernel may have marked lines of a GPU's L2 cache as persisting: they would outlive this.
        """
        self._memory.settle()
        if self._device.type == "cuda":
            self.persisting_l2_reset = reset_persisting_l2(self._device.index or 0)
        self.tensor.add_(1)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def close(self) -> None:
        """Give the memory back; a CPU's is kept for other problems."""
        self.tensor = self.tensor.new_empty(0)


def _tensor(device: torch.device) -> torch.Tensor:
    size = max(2 * cache_bytes(str(device)), 16 * 2**20)
    return torch.zeros(size, dtype=torch.uint8, device=device)


@cache
def _host_tensor() -> torch.Tensor:
    """One for all problems of this process: fresh pages for the caches of a server take 0.3 s."""
    return _tensor(torch.device("cpu"))
