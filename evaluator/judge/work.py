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
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry

from evaluator.evaluation import Precision
from evaluator.judge import work_rules


@dataclass(frozen=True)
class Work:
    """What one forward call has to do. Bytes and operations, not times."""

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
    bytes_out: int = 0
    """The part of `bytes_soft` that is written: the outputs."""

    def bytes_hard(self, cache_bytes: int = 0) -> int:
        """Bytes that cross the memory bus at least, if a cache may keep so much of the output."""
        return self.bytes_read_hard + max(0, self.bytes_written_hard - cache_bytes)


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
    tensors = [leaf for leaf in tree_leaves(list(inputs)) if isinstance(leaf, Tensor)]
    nonzero = [_nonzero_share(t) for t in tensors]
    nonzero += [_nonzero_share(t) for t in [*module.parameters(), *module.buffers()]]
    if probe is None:
        probe = any(t.device.type == "cuda" for t in tensors)
    with torch.no_grad():
        try:
            counter, outputs = _run(copy.deepcopy(module), _copied(inputs), nonzero, precision)
        except torch.OutOfMemoryError:
            counter, outputs = _on_meta(module, inputs, nonzero, precision)
        flops, accumulation = counter.flops, counter.accumulation
        if counter.opaque:
            # Recurrent layers and attention may be one operator; on meta they are their products.
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
    origins = counter.origins
    written = counter.bytes_written(outputs)
    return Work(
        bytes_soft=counter.bytes_read() + written,
        bytes_read_hard=sum(
            int(share * nonzero[number] * _bytes(tensors[number]))
            for number, share in proven.items()
        ),
        bytes_written_hard=counter.bytes_written([t for t in outputs if _key(t) not in origins]),
        flops=flops,
        elementwise=counter.elementwise,
        transcendental=counter.transcendental,
        accumulation=accumulation,
        operators=counter.operators,
        bytes_out=written,
    )


def _copied(inputs: Sequence[Any]) -> list[Any]:
    return list(tree_map(lambda v: v.clone() if isinstance(v, Tensor) else v, list(inputs)))


def _on_meta(
    module: torch.nn.Module, inputs: Sequence[Any], nonzero: Sequence[float], precision: Precision
) -> tuple[_Counter, list[Tensor]]:
    meta = copy.deepcopy(module).to("meta")
    moved = tree_map(lambda v: v.to("meta") if isinstance(v, Tensor) else v, list(inputs))
    return _run(meta, moved, nonzero, precision)


def _run(
    module: torch.nn.Module, inputs: Sequence[Any], nonzero: Sequence[float], precision: Precision
) -> tuple[_Counter, list[Tensor]]:
    counter = _Counter(precision)
    tensors = [leaf for leaf in tree_leaves(list(inputs)) if isinstance(leaf, Tensor)]
    state_nonzero = nonzero[len(tensors) :]
    for number, (tensor, share) in enumerate(zip(tensors, nonzero, strict=False)):
        counter.watch(tensor, number, dense=tensor.is_floating_point() and share > 0.99)
    state = [*module.parameters(), *module.buffers()]
    for tensor, share in zip(state, state_nonzero, strict=True):
        counter.watch(tensor, None, dense=tensor.is_floating_point() and share > 0.99)
    with counter:
        result = module(*inputs)
    return counter, [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]


def _bytes(tensor: Tensor) -> int:
    return int(_unique(tensor) * tensor.element_size())


def _unique(tensor: Tensor) -> int:
    """Elements that lie at places of their own: an expanded dimension counts once."""
    if tensor.numel() == 0:
        return 0
    return math.prod(
        size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0
    )


def _nonzero_share(tensor: Tensor) -> float:
    if tensor.device.type == "meta" or tensor.numel() == 0:
        return 1.0
    return float(torch.count_nonzero(tensor)) / float(tensor.numel())


def _key(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _probed(
    module: torch.nn.Module, inputs: Sequence[Any], proven: dict[int, float]
) -> dict[int, float]:
    """Drop the inputs whose values make no difference to the outputs."""
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
            noise = torch.rand(min(value.numel(), 65521), generator=generator).to(value.device)
            repeated = noise.repeat(-(-value.numel() // noise.numel()))[: value.numel()]
            return value * (0.5 + repeated.reshape(value.shape).to(value.dtype))

        result = copy.deepcopy(module)(*tree_map(other, list(inputs)))
        return [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]

    usual = outputs(None)
    kept = {}
    for number, share in proven.items():
        same = all(
            float((a.float() - b.float()).abs().max()) <= 1e-3 * float(a.float().abs().max())
            for a, b in zip(usual, outputs(number), strict=True)
            if a.numel()
        )
        kept[number] = 0.0 if same else share
    return kept


class _Counter(TorchDispatchMode):  # type: ignore[misc]
    """Watches every operator: what it reads, what it computes, and which inputs reach where."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: nothing is compiled here, and asking to be skipped imports the compiler (1.6 s)."""
        return False

    def __init__(self, precision: Precision) -> None:
        super().__init__()
        self.origins: dict[int, tuple[int | None, Tensor]] = {}
        """By storage: number of the input (None: parameter or buffer) and the tensor."""
        self.flops: dict[str, float] = {}
        self.elementwise = 0.0
        self.transcendental = 0.0
        self.accumulation = 1
        self.operators = 0
        self.opaque = False
        """A recurrent layer or attention ran whose operations are not counted."""
        self._precision = precision
        self._views: dict[int, dict[tuple[object, ...], int]] = {}
        self._changed: set[int] = set()
        # By storage: input number -> share of it of which every element reaches this tensor.
        self._reach: dict[int, dict[int, float]] = {}
        self._dense: dict[int, bool] = {}
        self._sums: dict[int, int] = {}
        # Not the storage's own size: an operator may have resized it from something larger.
        self._sizes: dict[int, int] = {}

    def watch(self, tensor: Tensor, number: int | None, *, dense: bool) -> None:
        """Call before running: this tensor is an input or a parameter."""
        key = _key(tensor)
        if key not in self.origins:
            self.origins[key] = (number, tensor)
            self._dense[key] = dense

    def bytes_read(self) -> int:
        """Of inputs and parameters, each element once."""
        return sum(
            min(_bytes(self.origins[key][1]), sum(views.values()))
            for key, views in self._views.items()
        )

    def bytes_written(self, outputs: Sequence[Tensor]) -> int:
        """Of distinct outputs."""
        return sum(
            {(_key(t), t.storage_offset()): t.numel() * t.element_size() for t in outputs}.values()
        )

    def proven(self, outputs: Sequence[Tensor]) -> dict[int, float]:
        """For each input the share of it that provably reaches the outputs."""
        return _union([self._read(t) for t in outputs])

    def _read(self, tensor: Tensor) -> dict[int, float]:
        key = _key(tensor)
        if key in self.origins and key not in self._changed:
            number, whole = self.origins[key]
            return {} if number is None else {number: _unique(tensor) / max(1, _unique(whole))}
        return self._reach.get(key, {}) if _bytes(tensor) >= self._held_bytes(tensor) else {}

    def _held_bytes(self, tensor: Tensor) -> int:
        """Of the tensor that this one is a view of, or of itself."""
        held = self._sizes.get(_key(tensor))
        return int(tensor.untyped_storage().nbytes()) if held is None else held

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        operands = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        name = func._schema.name.removeprefix("aten::")
        before = {_key(t) for t in operands}
        in_place = func._schema.is_mutable
        free_of_zeros = [self._dense.get(_key(t), False) or t.dim() == 0 for t in operands]
        reach = work_rules.reach(
            name,
            func,
            args,
            kwargs,
            list(zip(map(self._read, operands), free_of_zeros, strict=True)),
        )
        sums = max((self._sums.get(_key(t), 1) for t in operands), default=1)
        result = func(*args, **kwargs)
        made = [t for t in tree_leaves(result) if isinstance(t, Tensor)]
        if not in_place and made and all(_key(t) in before for t in made):
            return result
        self.operators += 1
        self._note_reads(name, operands)
        self._note_operations(func, name, args, kwargs, operands, made, result)
        own = work_rules.accumulation(name, args, operands, made)
        linear = name.rstrip("_") in work_rules.SUMS
        total = own * sums if linear else own
        self.accumulation = max(self.accumulation, total)
        # A product with a mask is full of zeros, and so is whatever is made of it.
        dense = reach is not None and work_rules.dense(name, free_of_zeros)
        for tensor in made:
            key = _key(tensor)
            partial = in_place and _bytes(tensor) < self._held_bytes(tensor)
            self._reach[key] = {} if partial or reach is None else reach
            if key not in before:
                self._sizes[key] = _bytes(tensor)
            self._dense[key] = dense and not partial and tensor.is_floating_point()
            self._sums[key] = total if linear else (sums if own == 1 else 1)
            if key in before:
                self._changed.add(key)
        return result

    def _note_reads(self, name: str, operands: Sequence[Tensor]) -> None:
        for position, tensor in enumerate(operands):
            key = _key(tensor)
            if key not in self.origins or key in self._changed:
                continue
            if work_rules.only_writes(name, position):
                continue
            size = _bytes(tensor)
            if name in work_rules.GATHERS and position == work_rules.GATHERS[name]:
                size = min(size, self._gathered(name, tensor, operands))
            view = (tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
            self._views.setdefault(key, {})[view] = size

    @staticmethod
    def _gathered(name: str, table: Tensor, operands: Sequence[Tensor]) -> int:
        """Bytes of the elements or rows that the indices can touch."""
        indices = [t for t in operands if not t.is_floating_point() and t is not table]
        count = max((t.numel() for t in indices), default=table.numel())
        row = table.numel() // table.shape[0] if name != "gather" and table.dim() else 1
        return int(count * row * table.element_size())

    def _note_operations(
        self,
        func: Any,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        operands: Sequence[Tensor],
        made: Sequence[Tensor],
        result: Any,
    ) -> None:
        formula = flop_registry.get(func._overloadpacket)
        if formula is not None:
            kind = str(operands[0].dtype).removeprefix("torch.")
            if kind == "float32" and self._precision is Precision.TF32:
                kind = "tfloat32"
            count = float(formula(*args, **kwargs, out_val=result))
            self.flops[kind] = self.flops.get(kind, 0.0) + count
            return
        counted = made if name in work_rules.GATHERS else [*operands, *made]
        self.opaque |= "rnn" in name or "attention" in name
        size = float(max((t.numel() for t in counted), default=0))
        self.elementwise += size
        if name.rstrip("_") in work_rules.TRANSCENDENTAL:
            self.transcendental += size


def _union(parts: Sequence[dict[int, float]]) -> dict[int, float]:
    whole: dict[int, float] = {}
    for part in parts:
        for number, share in part.items():
            whole[number] = max(whole.get(number, 0.0), min(1.0, share))
    return whole
