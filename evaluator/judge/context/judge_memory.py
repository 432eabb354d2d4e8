"""What the judge itself takes of a GPU's memory, and what is left of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_WIPED_BYTES_PER_S = 300e9
"""How quickly a device wipes memory that was given back, at least; an H100 wipes 426e9, an H200
493e9."""


class JudgeMemory:
    """The judge's tensors on one GPU; on a CPU nothing is known and there is always room."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._on_gpu = device.type == "cuda"
        self._most_bytes = 0
        self.verifying_bytes = 0
        """Most that the judge has taken while it verified one call."""
        self._given_back_bytes = self._all_given_back()
        """By PyTorch, since the process began, when it was last looked at."""

    @contextmanager
    def measured(self) -> Iterator[list[int]]:
        """Afterwards the list holds the most bytes that were taken meanwhile; empty on a CPU."""
        taken: list[int] = []
        if not self._on_gpu:
            yield taken
            return
        before = torch.cuda.memory_allocated(self._device)
        self._note()
        torch.cuda.reset_peak_memory_stats(self._device)
        yield taken
        taken.append(torch.cuda.max_memory_allocated(self._device) - before)
        self._note()

    @contextmanager
    def measured_verification(self) -> Iterator[None]:
        """Note how much the judge takes meanwhile, beyond what it has now."""
        with self.measured() as taken:
            yield
        self.verifying_bytes = max(self.verifying_bytes, *taken, 0)

    def _note(self) -> None:
        self._most_bytes = max(self._most_bytes, torch.cuda.max_memory_allocated(self._device))

    def most_bytes(self) -> int | None:
        if not self._on_gpu:
            return None
        self._note()
        return self._most_bytes

    def has_free(self, size: int) -> bool:
        """Whether workers can have `size` bytes. Where they could not, what PyTorch keeps for the
        judge's next tensors is given back."""
        # Asking the driver takes milliseconds while contexts are made on the host's GPUs.
        if not self._on_gpu or size <= 0 or self._free_bytes() >= size:
            return True
        self.give_back()
        return self._free_bytes() >= size

    def is_enough_for(self, size: int) -> bool:
        return not self._on_gpu or self._total_bytes() >= size

    def can_take(self, size: int) -> bool:
        """Whether the judge can have `size` bytes, of those that are free and those that PyTorch
        keeps for its next tensors."""
        if not self._on_gpu:
            return True
        reserved = torch.cuda.memory_reserved(self._device)
        unused = reserved - torch.cuda.memory_allocated(self._device)
        return self._free_bytes() + unused >= size

    def give_back(self) -> None:
        if self._on_gpu:
            torch.cuda.empty_cache()

    def settle(self) -> None:
        """Wait until the device has wiped what the judge has given back.

        Meanwhile its memory is slower for all: by 16 % on an H100.
        """
        if not self._on_gpu:
            return
        given_back = self._all_given_back()
        # What was given back and taken again is wiped by now: there is no more than all of it.
        wiped = min(self._total_bytes(), given_back - self._given_back_bytes)
        time.sleep(wiped / _WIPED_BYTES_PER_S)
        self._given_back_bytes = given_back

    @contextmanager
    def settled_after(self) -> Iterator[None]:
        """Likewise for what another process gives back meanwhile."""
        with self.freed() as freed:
            yield
        time.sleep(sum(freed) / _WIPED_BYTES_PER_S)

    @contextmanager
    def freed(self) -> Iterator[list[int]]:
        """Afterwards the list holds how many bytes became free on the device; empty on a CPU.

        Any process may have had them.
        """
        freed: list[int] = []
        if not self._on_gpu:
            yield freed
            return
        before = self._free_bytes()
        yield freed
        freed.append(max(0, self._free_bytes() - before))

    def _all_given_back(self) -> int:
        if not self._on_gpu:
            return 0
        return int(torch.cuda.memory_stats(self._device).get("reserved_bytes.all.freed", 0))

    def _total_bytes(self) -> int:
        return int(torch.cuda.get_device_properties(self._device).total_memory)

    def _free_bytes(self) -> int:
        return int(torch.cuda.mem_get_info(self._device)[0])
