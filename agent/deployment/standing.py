"""What a module was made of when the kernel ran in it: while that stands, calls that look the same
go straight to the kernel."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils._pytree import tree_leaves

from agent.deployment.built_kernel import ALIGNMENT_BYTES, version_of
from agent.deployment.proven_call import IN_MEMORY, ProvenCall
from evaluator.worker.values import flatten

_Part = tuple[type, dict[str, nn.Module | None], bool | None]
"""Its class, what it consists of, and its mode where that may matter."""
_SCALARS = (type(None), bool, int, float, str)
_Weight = tuple[dict[str, Tensor | None], str, Tensor, Tensor, int]
"""Where it is registered, its name there, itself, a view of its memory, and its version."""


@dataclass(frozen=True)
class ReadyCall:
    """A proven call whose kernel is constructed."""

    call: ProvenCall
    module: nn.Module
    gpu: int | None
    constants: tuple[tuple[int, weakref.ref[Tensor], object], ...]
    """Of the leaves, those with judged values: which, and their version."""

    def serves(self, values: Sequence[Any]) -> bool:
        if self.gpu is not None and self.gpu != torch.cuda.current_device():
            return False
        leaves = tree_leaves(values) if self.constants else []
        return all(
            seen() is leaves[place] and version_of(leaves[place]) == version
            for place, seen, version in self.constants
        )

    def run(self, values: Sequence[Any]) -> Any:
        found = self.module(*values[: self.call.given])
        is_single = type(found) is Tensor and self.call.result.is_leaf()
        if is_single and found.stride() == self.call.outputs[0].stride:
            return found
        return self.call.result_of(self.call.laid_out(flatten(found)))


@dataclass(frozen=True)
class Standing:
    part: _Part
    """Of the module, to which nothing here refers: it would outlive its use."""
    submodules: tuple[tuple[nn.Module, _Part], ...]
    weights: tuple[_Weight, ...]
    ready: dict[tuple[Hashable, ...], ReadyCall] = field(default_factory=dict)
    """By what their arguments look like."""

    @classmethod
    def of(
        cls, module: nn.Module, free: frozenset[str], names: Sequence[tuple[str, ...]]
    ) -> Standing | None:
        """`free`: submodules whose mode makes no difference. None where some weight's changes can't
        be told from its version."""
        (_, part), *submodules = (
            (each, (type(each), dict(each._modules), None if name in free else each.training))
            for name, each in module.named_modules()
        )
        weights: list[_Weight] = []
        for *path, name in names:
            owner: Any = reduce(getattr, path, module)
            place = owner._parameters if name in owner._parameters else owner._buffers
            weight = place.get(name)
            if weight is None or weight.is_inference():
                return None
            weights.append((place, name, weight, weight.detach(), weight._version))
        return cls(part, tuple(submodules), tuple(weights))

    def holds(self, module: nn.Module) -> bool:
        if not _stands(module, self.part):
            return False
        for each, part in self.submodules:
            # Hooks of the whole are called around its forward.
            if each._forward_hooks or each._forward_pre_hooks or not _stands(each, part):
                return False
        for registered, name, weight, view, version in self.weights:
            if registered.get(name) is not weight or weight._version != version:
                return False
            if not weight.is_set_to(view) or weight.dtype != view.dtype or weight.is_inference():
                return False
        return True


def _stands(module: nn.Module, part: _Part) -> bool:
    kind, children, mode = part
    if type(module) is not kind or module._modules != children:
        return False
    return mode is None or module.training is mode


def is_plain() -> bool:
    """Whether arguments and module alone decide on a call: there are no gradients or modes."""
    return not (torch.is_grad_enabled() or torch._C._is_any_autocast_enabled() or is_transformed())


def is_transformed() -> bool:
    return (
        torch._C._len_torch_dispatch_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or torch._C._get_tracing_state() is not None
    )


def look_of_values(values: Sequence[Any]) -> tuple[Hashable, ...] | None:
    """All that a kernel may depend on, but elements of tensors; None where it can't be told."""
    try:
        return tuple(map(_look, values))
    except TypeError:
        return None


def _look(value: Any) -> Hashable:
    kind = type(value)
    if kind in IN_MEMORY and value.layout is torch.strided:
        bits = value.is_conj(), value.is_neg(), value.data_ptr() % ALIGNMENT_BYTES == 0
        return kind, value.dtype, value.device, value.shape, value.stride(), bits
    if kind in (tuple, list):
        return kind, *map(_look, value)
    if kind in _SCALARS:
        return kind, value
    raise TypeError(kind)
