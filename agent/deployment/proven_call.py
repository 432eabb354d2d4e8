"""A call that a kernel was judged with: the form of its arguments and of its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from evaluator.worker.values import flatten
from problems.errors import UsageError

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

    def misfit(self, value: Any) -> str:
        """How a value differs; empty where it doesn't."""
        if type(value) not in _PLAIN or value.layout is not torch.strided:
            return "of another type"
        if value.dtype != self.dtype:
            return "of another dtype"
        if tuple(value.shape) != self.shape:
            return "of another shape"
        if self.is_contiguous:
            return "" if value.is_contiguous() else "not contiguous"
        return "" if tuple(value.stride()) == self.stride else "laid out otherwise"

    def empty(self, device: torch.device) -> Tensor:
        return torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device=device)


@dataclass(frozen=True)
class Arguments:
    """What forward takes, by position: leaves that are no tensors as they are."""

    leaves: tuple[Any, ...]
    spec: TreeSpec
    is_flat: bool

    @classmethod
    def of(cls, values: Iterable[Any]) -> Arguments:
        given = tuple(values)
        leaves, spec = tree_flatten(given)
        forms = tuple(TensorForm.of(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves)
        return cls(forms, spec, [*map(id, given)] == [*map(id, leaves)])

    def leaves_of(self, values: Sequence[Any]) -> Sequence[Any] | None:
        """None where they are nested otherwise."""
        if self.is_flat:
            return values if len(values) == len(self.leaves) else None
        leaves, spec = tree_flatten(tuple(values))
        return leaves if spec == self.spec else None

    @property
    def size_bytes(self) -> int:
        forms = (leaf for leaf in self.leaves if isinstance(leaf, TensorForm))
        return sum(math.prod(form.shape) * form.dtype.itemsize for form in forms)

    def misfit(self, values: Sequence[Any]) -> str:
        leaves = self.leaves_of(values)
        if leaves is None:
            return "the arguments have another structure"
        for form, leaf in zip(self.leaves, leaves, strict=True):
            if isinstance(form, TensorForm):
                if found := form.misfit(leaf):
                    return f"an argument is {found}"
            elif type(leaf) is not type(form) or leaf != form:
                return "an argument has another value"
        return ""

    def with_tensors(self, made: Callable[[TensorForm], Tensor]) -> tuple[Any, ...]:
        leaves = [made(leaf) if isinstance(leaf, TensorForm) else leaf for leaf in self.leaves]
        return tuple(leaves if self.is_flat else tree_unflatten(leaves, self.spec))


@dataclass(frozen=True)
class ProvenCall:
    initial_arguments: list[Any]
    construction: str
    """These as text."""
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

    def result_of(self, outputs: Sequence[Tensor]) -> Any:
        if self.result.is_leaf():
            return outputs[0]
        leaves = [outputs[place] if place >= 0 else None for place in self.order]
        return tree_unflatten(leaves, self.result)


def proven_call(
    module: nn.Module,
    initial_arguments: list[Any],
    given: list[Any],
    defaults: list[Any],
    constants: dict[int, Tensor],
    device: torch.device,
) -> ProvenCall:
    """Runs the original on fakes, for the form of its result."""
    arguments = Arguments.of([*given, *defaults[len(given) :]])
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        fakes = arguments.with_tensors(lambda form: form.empty(device))
        try:
            leaves, spec = tree_flatten(module.forward(*fakes))
        except Exception as error:
            what = str(error).strip().partition("\n")[0]
            raise UsageError(f"{type(module).__name__} can't be traced: {what}") from error
    if not all(leaf is None or isinstance(leaf, Tensor) for leaf in leaves):
        raise UsageError(f"{type(module).__name__} returns more than tensors")
    # The judge takes the results of a dict in the order of its keys.
    numbered = [
        leaf if leaf is None else torch.tensor(n, device="cpu") for n, leaf in enumerate(leaves)
    ]
    places = tree_unflatten(numbered, spec)
    numbers = [int(place) for place in flatten(places)]
    forms = tuple(TensorForm.of(leaves[number]) for number in numbers)
    order = tuple(-1 if leaf is None else numbers.index(n) for n, leaf in enumerate(leaves))
    return ProvenCall(
        initial_arguments,
        repr(initial_arguments),
        arguments,
        len(given),
        constants,
        forms,
        spec,
        order,
    )
