"""Whether an error says that memory ran out, for which PyTorch on a CPU has no exception."""

from __future__ import annotations

import re

import torch

_ON_CPU = re.compile(r"can't allocate memory|not enough memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Also of a `RuntimeError` that PyTorch's allocator raised on a CPU, and of Python's own."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and _ON_CPU.search(str(error)) is not None
