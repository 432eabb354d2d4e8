"""Memory that the judge owns and lends to workers by file descriptor, on the CPU or a GPU."""

from __future__ import annotations

import fcntl
import mmap
import os
from dataclasses import dataclass

import torch

from evaluator.hardware import cuda_memory

_F_SEAL_FUTURE_WRITE = 0x0010


@dataclass
class Arena:
    """A piece of shared memory: `bytes` is the judge's view, uint8, shape [size]."""

    bytes: torch.Tensor
    size: int
    fd: int
    mapping: mmap.mmap | cuda_memory.DeviceMapping

    def close(self) -> None:
        """Give the memory back; views of it must be gone on a GPU."""
        os.close(self.fd)
        if self.bytes.is_cuda:
            torch.cuda.synchronize(self.bytes.device)
        self.bytes = torch.empty(0, dtype=torch.uint8)
        if isinstance(self.mapping, cuda_memory.DeviceMapping):
            self.mapping.unmap()


def make_arena(device: torch.device, size: int, *, read_only_for_others: bool) -> Arena:
    """Shared memory of at least `size` bytes on `device`.

    On the CPU a read-only arena is sealed: no process can map it for writing any more, whatever
    descriptor it holds, while the judge's own mapping stays writable. No process can seal an arena
    further, which would end the workers to come. On a GPU the worker's
    mapping is read-only because the worker's trusted part asks for that before the candidate is
    imported. Raises `DeviceError` when the device has no memory left.
    """
    if device.type == "cuda":
        mapping, fd = cuda_memory.create(device.index or 0, size)
        return Arena(mapping.as_bytes(str(device)), mapping.size, fd, mapping)
    size = max(mmap.PAGESIZE, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
    fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    memory = mmap.mmap(fd, size)
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
    if read_only_for_others:
        seals |= _F_SEAL_FUTURE_WRITE
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return Arena(torch.frombuffer(memory, dtype=torch.uint8), size, fd, memory)
