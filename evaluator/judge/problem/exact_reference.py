"""The reference in fp64: whole, in slices of its batch where that is the same, or on the CPU."""

from __future__ import annotations

import copy
import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from evaluator.judge.problem.problem_file import converted, is_out_of_memory
from evaluator.judge.problem.reference import Reference, flatten, flatten_arguments

Source = Literal["fp64", "fp64_sliced", "fp64_cpu", "task_precision"]
Arguments = Callable[[], list[Any]]
"""Makes the arguments of one call anew, as often as it is asked."""

_SLICES = 16
_SLICE_TOLERANCE = 2.0**-18
"""Largest RMSE, relative to the outputs' rms, between slices and the whole in the task's precision.
Another order of adding stays below it; statistics over a batch, restarted scans and norms do not.
"""
_BLOCK = 2**24
_KEPT_BYTES = 2**28
"""Parameters in fp64 that take more are made anew for each call, or slice."""


@dataclass(frozen=True)
class Exact:
    outputs: list[Tensor] | None
    source: Source


class ExactReference:
    """Outputs of a reference in fp64, and its inputs after the call where it changes them.

    The way that fitted the memory last is tried first: all at once on the device, slice by slice
    there, or on the CPU. Slices are used only where the outputs of slices in the task's precision
    are those of the whole."""

    def __init__(self, reference: Reference, *, slices_first: bool = False) -> None:
        """`slices_first`: they are tried before the whole, which takes far more memory."""
        self._reference = reference
        self._ways: list[Source] = ["fp64", "fp64_sliced", "fp64_cpu"]
        if slices_first:
            self._ways.insert(0, "fp64_sliced")
        if reference.device.type == "cpu":
            self._ways.remove("fp64_cpu")
        self._model: torch.nn.Module | None = None
        self._model_state = -1
        self._sliceable: bool | None = None

    def outputs(self, arguments: Arguments) -> tuple[list[Tensor] | None, Source]:
        """Outputs in fp64 on the device and how they were made; None where the module can't run
        in fp64. Raises `torch.OutOfMemoryError` where none of the ways fits."""
        while self._ways:
            way = self._ways[0]
            try:
                found = self._made(way, arguments)
            except Exception as error:  # noqa: BLE001 - a module of the user's
                if not is_out_of_memory(error):
                    # Not every module can: then the task's dtype must do, and the record says so.
                    self.forget()
                    self._ways = []
                    break
                # While the error is being handled, its frames hold tensors.
                found = None
            if found is not None:
                return found, way
            self.forget()
            gc.collect()
            if self._reference.device.type == "cuda":
                torch.cuda.empty_cache()
            if len(self._ways) == 1:
                raise torch.OutOfMemoryError("the reference in fp64 does not fit")
            self._ways = self._ways[1:]
        return None, "task_precision"

    def forget(self) -> None:
        self._model = None

    def _made(self, way: Source, arguments: Arguments) -> list[Tensor] | None:
        if way == "fp64_sliced":
            return self._in_slices(arguments)
        device = torch.device("cpu") if way == "fp64_cpu" else self._reference.device
        return [
            tensor.to(self._reference.device)
            for tensor in self._run(_widened(arguments(), device), device)
        ]

    def _run(self, values: list[Any], device: torch.device) -> list[Tensor]:
        reference = self._reference
        if self._model is None or self._model_state != reference.state_changes:
            self._model = None
            self._model = _in_fp64(reference.model, device)
            self._model_state = reference.state_changes
        for wide, model in zip(self._model.modules(), reference.model.modules(), strict=True):
            wide.training = model.training
        with torch.no_grad(), reference.undoing(self._model), _widening():
            outputs = flatten(self._model(*values))
        if reference.changes_inputs:
            outputs += flatten_arguments(values)
        if sum(tensor.nbytes for tensor in self._model.parameters()) > _KEPT_BYTES:
            self.forget()
        return outputs

    def _in_slices(self, arguments: Arguments) -> list[Tensor] | None:
        values, device = arguments(), self._reference.device
        if self._sliceable is None:
            self._sliceable = self._slices_are_the_whole(values)
        if not self._sliceable:
            return None
        whole: list[Tensor] = []
        for bounds in _bounds(values):
            part = self._run(_widened(_cut(values, bounds), device), device)
            if not whole:
                rows = _rows(values)
                whole = [t.new_empty((rows, *t.shape[1:])) for t in part]
            for target, each in zip(whole, part, strict=True):
                target[bounds].copy_(each)
            del part
        return whole

    def _slices_are_the_whole(self, values: list[Any]) -> bool:
        """Whether slices along the first dimension lead to the outputs of the whole batch."""
        rows = _rows(values)
        if rows < 2 or self._reference.changes_inputs:
            return False
        whole = self._reference.expected(values)
        if any(not t.dim() or t.shape[0] != rows for t in whole):
            return False
        squares = [0.0] * len(whole)
        try:
            for bounds in _bounds(values):
                part = self._reference.expected(_cut(values, bounds))
                for number, (one, all_of_it) in enumerate(zip(part, whole, strict=True)):
                    if one.shape != all_of_it[bounds].shape:
                        return False
                    squares[number] += _squares(one, all_of_it[bounds])
                del part
        except Exception as error:
            if is_out_of_memory(error):
                raise
            # A module may insist on its batch: then it has no slices.
            return False
        return all(
            math.sqrt(off) <= _SLICE_TOLERANCE * math.sqrt(_squares(t)) if off else True
            for off, t in zip(squares, whole, strict=True)
        )


def _in_fp64(model: torch.nn.Module, device: torch.device) -> torch.nn.Module:
    """A copy; its tensors that are neither parameters nor buffers are in fp64, too."""
    wide = copy.deepcopy(model).to(device=device, dtype=torch.float64)
    for module in wide.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, Tensor) and value.is_floating_point():
                setattr(module, name, value.to(torch.float64))
    return wide


@contextmanager
def _widening() -> Iterator[None]:
    """While this lasts, fp64 takes the place of fp32: as the dtype of new tensors, and where a
    module asks for fp32 by name."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Widening():
            yield
    finally:
        torch.set_default_dtype(before)


class _Widening(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is Tensor.float:
            func = Tensor.double
        args, kwargs = tree_map(
            lambda value: torch.float64 if value is torch.float32 else value, (args, kwargs or {})
        )
        return func(*args, **kwargs)


def _widened(values: list[Any], device: torch.device) -> list[Any]:
    """The same numbers in fp64; `values` is emptied on the way, so that memory is given back.

    They were made in the task's dtype: both references see the same numbers.
    """
    wide = []
    while values:
        wide.append(converted(values.pop(0), device, torch.float64))
    return wide


def _rows(values: list[Any]) -> int:
    """Size of the batch: of the first dimension of the first tensor; 0 without one."""
    sizes = [value.shape[0] for value in values if isinstance(value, Tensor) and value.dim()]
    return int(sizes[0]) if sizes and isinstance(values[0], Tensor) else 0


def _bounds(values: list[Any]) -> list[slice]:
    rows = _rows(values)
    step = -(-rows // min(_SLICES, rows))
    return [slice(top, min(top + step, rows)) for top in range(0, rows, step)]


def _cut(values: list[Any], bounds: slice) -> list[Any]:
    rows = _rows(values)
    return [
        value[bounds]
        if isinstance(value, Tensor) and value.dim() and value.shape[0] == rows
        else value
        for value in values
    ]


def _squares(one: Tensor, other: Tensor | None = None) -> float:
    total = 0.0
    flat = one.reshape(-1)
    beside = None if other is None else other.reshape(-1)
    for start in range(0, flat.numel(), _BLOCK):
        part = _wide(flat[start : start + _BLOCK])
        if beside is not None:
            part = part - _wide(beside[start : start + _BLOCK])
        total += float(part.square_().nan_to_num_(0.0, 0.0, 0.0).sum())
    return total


def _wide(part: Tensor) -> Tensor:
    return torch.view_as_real(part).double() if part.is_complex() else part.double()
