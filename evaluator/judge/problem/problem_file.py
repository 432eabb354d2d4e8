"""A problem's file as Python: the module that it defines, and what its functions give.

It is the user's own code and is trusted.
"""

from __future__ import annotations

import linecache
import re
import types
from collections.abc import Callable
from typing import Any

import torch

from evaluator.errors import UnusableReferenceError

_FILE = "reference.py"
_FROM_HUB = re.compile(r"\.from_pretrained\(")


class ProblemFile:
    """A problem file that was imported.

    Everything here raises `UnusableReferenceError` when the file does not do what a problem file
    must.
    """

    def __init__(self, source: str) -> None:
        if _FROM_HUB.search(source):
            raise UnusableReferenceError(
                "the problem calls from_pretrained, and workers have no network: build its model "
                "from a configuration that the file holds"
            )
        self.module = types.ModuleType("reference")
        linecache.cache[_FILE] = (len(source), None, source.splitlines(keepends=True), _FILE)
        try:
            exec(compile(source, _FILE, "exec"), self.module.__dict__)
        except Exception as error:
            raise UnusableReferenceError(f"the problem file raised {error!r}") from error
        self.is_function = hasattr(self.module, "FUNCTION")
        self.thresholds: dict[str, float] = getattr(self.module, "THRESHOLDS", {})
        """How far a quantised task's outputs may be off, in its own words; else empty."""
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if not hasattr(self.module, name):
                raise UnusableReferenceError(f"the problem file defines no {name}")

    def initial_arguments(self) -> list[Any]:
        return _listed(self.module.get_init_inputs)

    def inputs(self, device: torch.device, dtype: torch.dtype | None) -> list[Any]:
        """Arguments of one forward call, made on `device` where the file lets that happen; the
        floating ones as `dtype`, but for a function's, which has calls of several dtypes."""
        if self.is_function:
            dtype = None
        with torch.device(device):
            values = _listed(self.module.get_inputs)
        try:
            return list(converted(values, device, dtype))
        except TypeError as error:  # a sequence that is made otherwise, such as a named tuple
            raise UnusableReferenceError(f"what get_inputs() gives: {error}") from error


def converted(value: Any, device: torch.device, dtype: torch.dtype | None) -> Any:
    """`value` with its tensors on `device`, the floating ones as `dtype` (None: as they are)."""
    if isinstance(value, torch.Tensor):
        target = value.dtype
        if dtype is not None and value.is_floating_point():
            target = dtype
        elif dtype is torch.float64 and value.is_complex():
            target = torch.complex128
        return value.detach().to(device=device, dtype=target)
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return type(value)(converted(item, device, dtype) for item in value)
    if isinstance(value, dict):
        return {key: converted(item, device, dtype) for key, item in value.items()}
    return value


def _listed(function: Callable[[], Any]) -> list[Any]:
    try:
        return list(function())
    except Exception as error:
        if is_out_of_memory(error):
            raise torch.OutOfMemoryError(str(error)) from None
        raise UnusableReferenceError(f"{function.__name__}() raised {error!r}") from error


_ON_CPU = re.compile(r"can't allocate memory|not enough memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Also of a `RuntimeError` that PyTorch's allocator raised on a CPU, and of Python's own."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and _ON_CPU.search(str(error)) is not None
