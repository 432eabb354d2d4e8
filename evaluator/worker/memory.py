"""The worker's memory: inputs to read and a slot for outputs, as the judge made them; its limit."""

from __future__ import annotations

import ctypes
import mmap
import resource
from dataclasses import dataclass
from pathlib import Path

import torch

from evaluator.hardware.cuda_memory import import_memory
from evaluator.hardware.kernel_files import kilobyte_fields
from evaluator.worker.orders import Layout

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]


@dataclass(frozen=True)
class SharedMemory:
    """Where a piece of shared memory lies: `device` is `cpu` or a CUDA ordinal as text."""

    device: str
    size: int
    fd: int


def map_shared(memory: SharedMemory, *, writable: bool) -> torch.Tensor:
    """A uint8 tensor of shape [size] over shared memory; a write to a read-only one faults, and so
    does any access behind it."""
    if memory.device == "cpu":
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        # The file ends before the last page.
        size = memory.size + mmap.PAGESIZE
        address = _libc.mmap(None, size, protection, mmap.MAP_SHARED, memory.fd, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "mmap of shared memory failed")
        # from_address says nothing of the protection, so torch takes it without a warning.
        buffer = (ctypes.c_char * memory.size).from_address(address)
        return torch.frombuffer(buffer, dtype=torch.uint8)
    ordinal = int(memory.device)
    mapping = import_memory(ordinal, memory.fd, memory.size, writable=writable)
    return mapping.as_bytes(f"cuda:{ordinal}")


def tensor_at(memory: torch.Tensor, layout: Layout) -> torch.Tensor:
    dtype = getattr(torch, layout["dtype"])
    start, size = layout["offset"], layout["span"]
    flat = memory[start : start + size].view(dtype)
    return torch.as_strided(flat, tuple(layout["shape"]), tuple(layout["stride"]))


def limit_growth(more_bytes: int) -> None:
    """Let this process write to so much more than it could write to until now."""
    most = kilobyte_fields(Path("/proc/self/status"))["VmData"] + more_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
