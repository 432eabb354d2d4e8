"""A call that a kernel was judged with: the form of its arguments and of its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

from evaluator.judge.blockwise import same
from evaluator.worker.values import flatten
from problems.errors import UsageError, first_line

_DRAWS = 3
IN_MEMORY = (Tensor, nn.Parameter)
_PLAIN = (*IN_MEMORY, FakeTensor, FunctionalTensor)
"""Tensors that are known by shape and strides; the last two stand for such in a trace."""


@dataclass(frozen=True)
class TensorForm:
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    is_contiguous: bool

    @classmethod
    def of(cls, tensor: Tensor) -> TensorForm:
        shape, stride = tuple(tensor.shape), tuple(tensor.stride())
        return cls(shape, stride, tensor.dtype, tensor.is_contiguous())

    def fits(self, value: Any) -> bool:
        if type(value) not in _PLAIN or value.layout is not torch.strided:
            return False
        if value.dtype != self.dtype or tuple(value.shape) != self.shape:
            return False
        return value.is_contiguous() if self.is_contiguous else tuple(value.stride()) == self.stride

    def empty(self, device: torch.device) -> Tensor:
        return torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device=device)


@dataclass(frozen=True)
class Arguments:
    """What forward takes, by position: leaves that are no tensors as they are."""

    leaves: tuple[Any, ...]
    spec: TreeSpec

    @classmethod
    def of(cls, values: Iterable[Any]) -> Arguments:
        leaves, spec = tree_flatten(tuple(values))
        forms = (TensorForm.of(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves)
        return cls(tuple(forms), spec)

    def leaves_of(self, values: Sequence[Any]) -> list[Any] | None:
        """None where they are others."""
        leaves, spec = tree_flatten(tuple(values))
        if spec == self.spec and all(map(_fits, self.leaves, leaves)):
            return leaves
        return None

    @property
    def size_bytes(self) -> int:
        forms = (leaf for leaf in self.leaves if isinstance(leaf, TensorForm))
        return sum(math.prod(form.shape) * form.dtype.itemsize for form in forms)

    def with_tensors(self, made: Callable[[TensorForm], Tensor]) -> tuple[Any, ...]:
        leaves = [made(leaf) if isinstance(leaf, TensorForm) else leaf for leaf in self.leaves]
        return tuple(tree_unflatten(leaves, self.spec))


def _fits(judged: Any, leaf: Any) -> bool:
    if isinstance(judged, TensorForm):
        return judged.fits(leaf)
    return type(leaf) is type(judged) and bool(leaf == judged)


@dataclass(frozen=True)
class ProvenCall:
    initial_arguments: list[Any]
    arguments: Arguments
    """With the module's defaults."""
    given: int
    """How many of them the kernel gets."""
    constants: dict[int, Tensor]
    """Leaves that are always drawn alike, a mask say: a kernel may rely on their values."""
    outputs: tuple[TensorForm, ...]
    """Of the original, in the judge's order."""
    result: TreeSpec
    order: tuple[int, ...]
    """For each leaf of the result, which output it is; -1 for None."""

    @cached_property
    def construction(self) -> str:
        """What cases have in common that are constructed alike."""
        return repr(self.initial_arguments)

    def laid_out(self, found: Sequence[Tensor]) -> list[Tensor]:
        """As the original's."""
        return [
            out if out.stride() == form.stride else form.empty(out.device).copy_(out)
            for out, form in zip(found, self.outputs, strict=True)
        ]

    def result_of(self, outputs: Sequence[Tensor]) -> Any:
        if self.result.is_leaf():
            return outputs[0]
        leaves = [outputs[place] if place >= 0 else None for place in self.order]
        return tree_unflatten(leaves, self.result)


def proven_call(
    module: nn.Module,
    initial_arguments: list[Any],
    inputs: Callable[[], list[Any]],
    defaults: Sequence[Any],
    device: torch.device,
) -> ProvenCall:
    """Runs the original on fakes, for the form of its result."""
    torch.manual_seed(0)
    given = inputs()
    arguments = Arguments.of([*given, *defaults[len(given) :]])
    first = enumerate(tree_leaves(given))
    constants = {place: leaf for place, leaf in first if isinstance(leaf, Tensor)}
    for seed in range(1, _DRAWS):
        torch.manual_seed(seed)
        drawn = tree_leaves(inputs())
        constants = {n: leaf for n, leaf in constants.items() if same(leaf, drawn[n])}
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        fakes = arguments.with_tensors(lambda form: form.empty(device))
        try:
            leaves, spec = tree_flatten(module.forward(*fakes))
        except Exception as error:
            kind = type(module).__name__
            raise UsageError(f"{kind} can't be traced: {first_line(error)}") from error
    if not all(leaf is None or isinstance(leaf, Tensor) for leaf in leaves):
        raise UsageError(f"{type(module).__name__} returns more than tensors")
    # The judge takes the results of a dict in the order of its keys.
    numbered = [
        leaf if leaf is None else torch.tensor(n, device="cpu") for n, leaf in enumerate(leaves)
    ]
    numbers = [int(place) for place in flatten(tree_unflatten(numbered, spec))]
    forms = tuple(TensorForm.of(leaves[number]) for number in numbers)
    order = tuple(-1 if leaf is None else numbers.index(n) for n, leaf in enumerate(leaves))
    return ProvenCall(initial_arguments, arguments, len(given), constants, forms, spec, order)
