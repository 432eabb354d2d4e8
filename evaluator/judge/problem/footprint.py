"""How much memory a task needs, known before any of it is taken.

The task's module runs once on PyTorch's meta device, where tensors have shapes and no values.
"""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from evaluator.judge.operator_mode import OperatorCall, OperatorMode, storage_of, tensors_in
from evaluator.judge.problem.problem_file import ProblemFile

_META = torch.device("meta")
_ELEMENTWISE = (torch.Tensor.mul, torch.Tensor.add, torch.Tensor.sub, torch.exp)
_FP64_PER_FP32 = 2
_LARGE_BYTES = 2**26
_SECONDS = 3.0
"""After which forward is given up on the meta device."""


@dataclass(frozen=True)
class Footprint:
    """Bytes that one forward call needs, in the task's precision."""

    inputs: int
    outputs: int
    weights: int
    forward: int
    """Most bytes that forward holds at once beyond inputs and weights; its outputs are among them.
    """

    @property
    def worker(self) -> int:
        return self.weights + self.forward + self.outputs

    @property
    def verifying(self) -> int:
        """What the judge holds at least while it verifies a call, with fp64 in slices."""
        once = self.inputs + self.weights + self.forward
        # The candidate's outputs, the reference's, and those in fp64.
        return once + (2 + _FP64_PER_FP32) * self.outputs

    def needed_on(self, device: torch.device) -> int:
        """What the judge and its workers hold at once at least: the larger of two stages.

        In the first the candidate's first calls are verified, in the second it is timed beside its
        baseline, and calls are verified in the task's precision. On a CPU the judge keeps a copy of
        the inputs to itself until a call starts.
        """
        first = self.inputs + self.worker + self.verifying
        timed = self.workers + self.verifying - _FP64_PER_FP32 * self.outputs
        return max(first, timed) + (self.inputs if device.type == "cpu" else 0)

    @property
    def workers(self) -> int:
        """What a candidate and its baseline hold together, and the inputs that they are lent."""
        return self.inputs + 2 * self.worker


def footprint_of(source: str, dtype: torch.dtype) -> Footprint | None:
    """The footprint of a problem file's module; None where it cannot be made on the meta device.

    What forward holds is looked for where inputs and weights are large, since that imports
    PyTorch's compiler (about 2 s, once). Elsewhere, and where forward does not run on the meta
    device, outputs and what forward holds count as nothing. Raises `UnusableReferenceError` when
    the file itself cannot be imported.
    """
    problem = ProblemFile(source)
    try:
        with _Shapes():
            with _META:
                module = problem.module.Model(*problem.initial_arguments())
            module = module.to(device=_META, dtype=dtype)
            values = problem.inputs(_META, dtype)
    except Exception:  # noqa: BLE001 - any operator may lack a meta kernel; nothing is known then
        return None
    inputs, weights = _bytes(values), _bytes([*module.parameters(), *module.buffers()])
    outputs = 0
    live = _LiveBytes()
    if inputs + weights >= _LARGE_BYTES:
        try:
            with torch.no_grad(), live:
                outputs = _bytes(module(*values))
        except Exception:  # noqa: BLE001 - likewise
            outputs = 0
    return Footprint(inputs, outputs, weights, forward=max(live.most, outputs))


class _Shapes(TorchFunctionMode):
    """On the meta device: what most recipes do with random numbers, by the shapes alone.

    PyTorch imports its compiler for these operators (about 2 s, once).
    """

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        if function in _ELEMENTWISE and not kwargs and all(each.is_meta for each in tensors):
            shape = np.broadcast_shapes(*(each.shape for each in tensors))
            dtype = torch.result_type(*args, *([1.0] if len(args) == 1 else []))
            return torch.empty(shape, dtype=dtype, device=_META)
        return (torch.rand if function is torch.randn else function)(*args, **(kwargs or {}))


def _bytes(value: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors_in(value))


class _TooLongError(Exception):
    """The meta device takes recurrent layers apart, which can take a minute."""


class _LiveBytes(OperatorMode):
    def __init__(self) -> None:
        super().__init__()
        self.most = 0
        self._now = 0
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._end = time.monotonic() + _SECONDS

    def result_of(self, call: OperatorCall) -> Any:
        if time.monotonic() > self._end:
            raise _TooLongError
        given = {storage_of(tensor) for tensor in call.operands}
        result = call.run()
        for made in tensors_in(result):
            if storage_of(made) not in given:
                self._watch(made.untyped_storage())
        self.most = max(self.most, self._now)
        return result

    def _watch(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key in self._alive:
            return
        size = storage.nbytes()

        def gone(_: object) -> None:
            self._now -= size
            self._alive.pop(key, None)

        self._alive[key] = weakref.ref(storage, gone)
        self._now += size
