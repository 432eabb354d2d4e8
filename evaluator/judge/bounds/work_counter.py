"""Counting, while a module runs, what its operators read and compute, and which inputs reach where.

What an input must provably be read for is in `work_rules`; what the counts mean is in `work`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.utils.flop_counter import flop_registry

from evaluator.judge.bounds import work_rules
from evaluator.judge.operator_mode import OperatorCall, OperatorMode, storage_of, tensors_in
from evaluator.settings import Precision
from evaluator.worker.values import dtype_name


class WorkCounter(OperatorMode):
    def __init__(self, precision: Precision) -> None:
        super().__init__()
        self._origins: dict[int, tuple[int | None, Tensor]] = {}
        """By storage: number of the input (None: parameter or buffer) and the tensor."""
        self.flops: dict[str, float] = {}
        self.elementwise = 0.0
        self.transcendental = 0.0
        self.accumulation = 1
        self.operators = 0
        self.asserts_values = False
        self.reads_values = False
        self.is_recurrent = False
        self.uses_cudnn = False
        self.orders_ties = False
        self.opaque = False
        """Attention ran whose operations are not counted."""
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
        key = storage_of(tensor)
        if key not in self._origins:
            self._origins[key] = (number, tensor)
            self._dense[key] = dense

    def made_here(self, tensor: Tensor) -> bool:
        return storage_of(tensor) not in self._origins

    def bytes_read(self) -> int:
        """Of inputs and parameters, each element once."""
        return sum(
            min(unique_bytes(self._origins[key][1]), sum(views.values()))
            for key, views in self._views.items()
        )

    def bytes_written(self, outputs: Sequence[Tensor]) -> int:
        return sum(
            {
                (storage_of(t), t.storage_offset()): t.numel() * t.element_size() for t in outputs
            }.values()
        )

    def proven(self, outputs: Sequence[Tensor]) -> dict[int, float]:
        """For each input the share of it that provably reaches the outputs."""
        return work_rules.union([self._read(t) for t in outputs])

    def _read(self, tensor: Tensor) -> dict[int, float]:
        key = storage_of(tensor)
        if key in self._origins and key not in self._changed:
            number, whole = self._origins[key]
            return {} if number is None else {number: _unique(tensor) / max(1, _unique(whole))}
        return self._reach.get(key, {}) if unique_bytes(tensor) >= self._held_bytes(tensor) else {}

    def _held_bytes(self, tensor: Tensor) -> int:
        """Of the tensor that this one is a view of, or of itself."""
        held = self._sizes.get(storage_of(tensor))
        return int(tensor.untyped_storage().nbytes()) if held is None else held

    def result_of(self, call: OperatorCall) -> Any:
        name, args, operands = call.name, call.args, call.operands
        before = {storage_of(t) for t in operands}
        in_place = call.func._schema.is_mutable
        free_of_zeros = [self._dense.get(storage_of(t), False) or t.dim() == 0 for t in operands]
        reach = work_rules.reach(
            name, args, list(zip(map(self._read, operands), free_of_zeros, strict=True))
        )
        sums = max((self._sums.get(storage_of(t), 1) for t in operands), default=1)
        result = call.run()
        made = tensors_in(result)
        if not in_place and made and all(storage_of(t) in before for t in made):
            return result
        self.operators += 1
        self.reads_values |= name in work_rules.READS_VALUES
        self.is_recurrent |= work_rules.is_recurrent(name)
        self.uses_cudnn |= "convolution" in name or self.is_recurrent
        self.orders_ties |= call.kwargs.get("stable") is True
        self.asserts_values |= work_rules.asserts_values(name, operands, made)
        self._note_reads(name, operands)
        self._note_operations(call, made, result)
        own = work_rules.accumulation(name, args, operands, made)
        linear = name.rstrip("_") in work_rules.SUMS
        total = own * sums if linear else own
        self.accumulation = max(self.accumulation, total)
        # A product with a mask is full of zeros, and so is whatever is made of it.
        dense = reach is not None and work_rules.dense(name, free_of_zeros)
        for tensor in made:
            key = storage_of(tensor)
            partial = in_place and unique_bytes(tensor) < self._held_bytes(tensor)
            self._reach[key] = {} if partial or reach is None else reach
            if key not in before:
                self._sizes[key] = unique_bytes(tensor)
            self._dense[key] = dense and not partial and tensor.is_floating_point()
            self._sums[key] = total if linear else (sums if own == 1 else 1)
            if key in before:
                self._changed.add(key)
        return result

    def _note_reads(self, name: str, operands: Sequence[Tensor]) -> None:
        for position, tensor in enumerate(operands):
            key = storage_of(tensor)
            if key not in self._origins or key in self._changed:
                continue
            if position == 0 and name in work_rules.ONLY_WRITING:
                continue
            size = unique_bytes(tensor)
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

    def _note_operations(self, call: OperatorCall, made: Sequence[Tensor], result: Any) -> None:
        name, operands = call.name, call.operands
        formula = flop_registry.get(call.func._overloadpacket)
        count = None
        if work_rules.is_recurrent(name):
            count = work_rules.recurrent_flops(operands)
        elif formula is not None:
            count = float(formula(*call.args, **call.kwargs, out_val=result))
        if count is not None:
            kind = dtype_name(operands[0].dtype)
            if kind == "float32" and self._precision is Precision.TF32:
                kind = "tfloat32"
            self.flops[kind] = self.flops.get(kind, 0.0) + count
            return
        counted = made if name in work_rules.GATHERS else [*operands, *made]
        self.opaque |= "attention" in name
        size = float(max((t.numel() for t in counted), default=0))
        self.elementwise += size
        if name.rstrip("_") in work_rules.TRANSCENDENTAL:
            self.transcendental += size


def unique_bytes(tensor: Tensor) -> int:
    """What a tensor holds; an expanded dimension counts once."""
    return int(_unique(tensor) * tensor.element_size())


def _unique(tensor: Tensor) -> int:
    if tensor.numel() == 0:
        return 0
    return math.prod(
        size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0
    )
