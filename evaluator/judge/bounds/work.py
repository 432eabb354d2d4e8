"""What a reference module has to do: bytes that must move and operations, counted by running it.

The module runs once under a dispatch mode. Two counts of bytes come out. The soft one is what a
perfect kernel would move: every input and parameter that is read, once, and every output. The hard
one may never be more than any honest kernel moves, so an input counts only as far as each of its
elements provably reaches an output: through operators known to use all of what they get. Slices,
masks, gathers and operators unknown to `work_rules` prove nothing, zeros in an input need not be
read, and parameters may have been folded beforehand.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from evaluator.judge.bounds.work_counter import WorkCounter, unique_bytes
from evaluator.judge.operator_mode import tensors_in
from evaluator.settings import Precision

_PERIOD = 2**24 - 3
"""Elements after which the numbers that an input is multiplied with come again."""
_BLOCK = 2**25


@dataclass(frozen=True)
class Work:
    bytes_soft: int
    """Inputs and parameters that are read, each once, and outputs."""
    bytes_read_hard: int
    """Bytes of inputs that provably must be read."""
    bytes_written_hard: int
    """Bytes of outputs that are no view of an input; caches may keep some of them."""
    flops: dict[str, float] = field(default_factory=dict)
    """Of matrix products, convolutions and attention, by arithmetic (float32, tfloat32, ...)."""
    elementwise: float = 0.0
    """Elements made or reduced by all other operators, intermediate ones included."""
    transcendental: float = 0.0
    """Those of them that need an exponential, a logarithm, a root or the like."""
    accumulation: int = 1
    """Length of the longest sum behind an output element."""
    operators: int = 0
    """Calls of operators that make something; views are none."""
    asserts_values: bool = False
    """An operator was seen that may end the process on numbers beyond some range."""
    reads_values: bool = False
    """What the module's Python code does depends on values: a loop may never end with others."""
    uses_cudnn: bool = False
    """A convolution or a recurrent layer was seen: PyTorch's default flags allow TF32 in these."""
    is_recurrent: bool = False
    """A recurrent layer was seen: each process runs these at a speed of its own."""
    orders_ties: bool = False
    """A sort was seen that is asked to be stable: which of two equal values comes first counts."""
    bytes_out: int = 0
    """The part of `bytes_soft` that is written: the outputs."""


def count_work(
    module: torch.nn.Module,
    inputs: Sequence[Any],
    precision: Precision = Precision.FP32,
    *,
    probe: bool | None = None,
) -> Work:
    """Count what `module(*inputs)` has to do.

    Neither the module nor the inputs are changed. `probe` (by default on a GPU, where there is a
    hard floor): each input that counts is also replaced by other values, and counts no more if the
    outputs stay as they were, as in an expression that cancels. That takes a forward call an input.
    Raises what the module raises.
    """
    tensors = tensors_in(list(inputs))
    nonzero = [_nonzero_share(t) for t in tensors]
    nonzero += [_nonzero_share(t) for t in [*module.parameters(), *module.buffers()]]
    if probe is None:
        probe = any(t.device.type == "cuda" for t in tensors)
    with torch.no_grad():
        try:
            copied = tree_map(lambda v: v.clone() if isinstance(v, Tensor) else v, list(inputs))
            counter, outputs = _run(copy.deepcopy(module), copied, nonzero, precision)
        except torch.OutOfMemoryError:
            counter, outputs = _on_meta(module, inputs, nonzero, precision)
        flops, accumulation = counter.flops, counter.accumulation
        if counter.opaque:
            # Attention may be one operator; on meta it is its products.
            with contextlib.suppress(NotImplementedError, RuntimeError):
                parts = _on_meta(module, inputs, nonzero, precision)[0]
                flops, accumulation = parts.flops, max(accumulation, parts.accumulation)
        proven = counter.proven(outputs)
        if probe and any(proven.values()):
            try:
                proven = _probed(module, inputs, proven)
            except torch.OutOfMemoryError:
                # What can't be probed is not held against anyone.
                proven = {}
    written = counter.bytes_written(outputs)
    return Work(
        bytes_soft=counter.bytes_read() + written,
        bytes_read_hard=sum(
            int(share * nonzero[number] * unique_bytes(tensors[number]))
            for number, share in proven.items()
        ),
        bytes_written_hard=counter.bytes_written([t for t in outputs if counter.made_here(t)]),
        flops=flops,
        elementwise=counter.elementwise,
        transcendental=counter.transcendental,
        accumulation=accumulation,
        operators=counter.operators,
        asserts_values=counter.asserts_values,
        reads_values=counter.reads_values,
        uses_cudnn=counter.uses_cudnn,
        is_recurrent=counter.is_recurrent,
        orders_ties=counter.orders_ties,
        bytes_out=written,
    )


def _on_meta(
    module: torch.nn.Module, inputs: Sequence[Any], nonzero: Sequence[float], precision: Precision
) -> tuple[WorkCounter, list[Tensor]]:
    # One `to("meta")` for all would make two of each parameter that modules share.
    state = {
        id(tensor): torch.nn.Parameter(tensor.to("meta"), tensor.requires_grad)
        if isinstance(tensor, torch.nn.Parameter)
        else tensor.to("meta")
        for tensor in [*module.parameters(), *module.buffers()]
    }
    meta = copy.deepcopy(module, state)
    moved = tree_map(lambda v: v.to("meta") if isinstance(v, Tensor) else v, list(inputs))
    return _run(meta, moved, nonzero, precision)


def _run(
    module: torch.nn.Module, inputs: Sequence[Any], nonzero: Sequence[float], precision: Precision
) -> tuple[WorkCounter, list[Tensor]]:
    counter = WorkCounter(precision)
    tensors = tensors_in(list(inputs))
    state_nonzero = nonzero[len(tensors) :]
    for number, (tensor, share) in enumerate(zip(tensors, nonzero, strict=False)):
        counter.watch(tensor, number, dense=tensor.is_floating_point() and share > 0.99)
    state = [*module.parameters(), *module.buffers()]
    for tensor, share in zip(state, state_nonzero, strict=True):
        counter.watch(tensor, None, dense=tensor.is_floating_point() and share > 0.99)
    with counter:
        result = module(*inputs)
    return counter, tensors_in(result)


def _nonzero_share(tensor: Tensor) -> float:
    if tensor.device.type == "meta" or tensor.numel() == 0:
        return 1.0
    # Of a tensor of 2^32 elements PyTorch would make 32 GiB of counts.
    blocks = tensor.view(-1).split(_BLOCK) if tensor.is_contiguous() else (tensor,)
    return sum(int(torch.count_nonzero(block)) for block in blocks) / tensor.numel()


def _probed(
    module: torch.nn.Module, inputs: Sequence[Any], proven: dict[int, float]
) -> dict[int, float]:
    generator = torch.Generator().manual_seed(0)

    def outputs(replaced: int | None) -> list[Tensor]:
        number = -1

        def other(value: Any) -> Any:
            nonlocal number
            if not isinstance(value, Tensor):
                return value
            number += 1
            if number != replaced:
                return value.clone()
            if not value.is_floating_point():
                return value.reshape(-1).roll(1).reshape(value.shape)
            changed = value.clone(memory_format=torch.contiguous_format)
            flat = changed.view(-1)
            noise = 0.5 + torch.rand(_PERIOD, generator=generator).to(changed)
            for start in range(0, flat.numel(), _PERIOD):
                part = flat[start : start + _PERIOD]
                part.mul_(noise[: part.numel()])
            return changed

        # What is random must not make a difference that no input makes.
        torch.manual_seed(0)
        result = copy.deepcopy(module)(*tree_map(other, list(inputs)))
        return tensors_in(result)

    usual = outputs(None)
    kept = {}
    for number, share in proven.items():
        pairs = list(zip(usual, outputs(number), strict=True))
        kept[number] = 0.0 if all(_hardly_differ(a, b) for a, b in pairs) else share
        del pairs
    return kept


def _hardly_differ(one: Tensor, other: Tensor) -> bool:
    largest = most = 0.0
    a, b = one.reshape(-1), other.reshape(-1)
    for start in range(0, a.numel(), _BLOCK):
        here, there = a[start : start + _BLOCK].float(), b[start : start + _BLOCK].float()
        largest = max(largest, float(here.abs().max()))
        # A NaN among them makes no difference smaller.
        off = float((here - there).abs().max())
        most = off if off != off else max(most, off)
    return most <= 1e-3 * largest
