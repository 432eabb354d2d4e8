"""Giving a candidate the reference's parameters and buffers: by name, else by order.

What the constructor derives from them is kept; what it merely initialises is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.modules import module as registration

Fit = Literal["none", "named", "ordered", "derived", "seeded", "unmatched"]
FITS: tuple[Fit, ...] = ("none", "named", "ordered", "derived", "unmatched")
"""By code, as they cross the wire. That a module is `seeded` is for the judge to say."""
_OTHER_SEED = 1
_OTHERS = (0.25, 1.0)
"""Between these are the weights under which a constructor is run once more: positive, so that no
variance is negative."""


@dataclass(frozen=True)
class Loaded:
    module: torch.nn.Module
    fit: Fit
    changed: bool = False
    """The constructor changed weights after they were registered."""
    unlike: str = ""
    """How the shapes of an `unmatched` one differ."""


def with_weights(
    build: Callable[[], torch.nn.Module],
    kind: type,
    weights: dict[str, Tensor],
) -> Loaded:
    """A module with these floating tensors, and how they fitted.

    `named`: every one has a namesake of its shape. `derived`: likewise, and some were kept as the
    constructor derived them from the weights. `ordered`: as many, of the same shapes, in the same
    order. `unmatched`: neither, and the module is as constructed. `none`: there are no weights.

    `build` constructs the module of class `kind`, from the same seed each time. `weights` are
    parameters and buffers by name, on the CPU.
    """
    if not weights:
        return Loaded(build(), "none")
    with _filled_while_constructing(kind, weights) as filled:
        module = build()
    own = _floating(module)
    if not all(n in own and own[n].shape == tensor.shape for n, tensor in weights.items()):
        if filled:
            # What it derived from weights of some names does not go with how all are copied.
            module = build()
        fit = _load_in_order(module, weights)
        return Loaded(module, fit, unlike=_unlike(own, weights) if fit == "unmatched" else "")
    changed = {name for name in filled if not _same(own[name], weights[name])}
    derived: set[str] = set()
    if changed:
        derived = _derived(build, kind, weights, changed, own)
        with _filled_while_constructing(kind, weights):
            module = build()
    own = _floating(module)
    with torch.inference_mode():
        for name, tensor in weights.items():
            if name not in derived:
                own[name].copy_(tensor)
    return Loaded(module, "derived" if derived else "named", changed=bool(changed))


def _floating(module: torch.nn.Module) -> dict[str, Tensor]:
    return {
        name: tensor.detach()
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]
        if tensor.is_floating_point() or tensor.is_complex()
    }


def _load_in_order(module: torch.nn.Module, weights: dict[str, Tensor]) -> Fit:
    own = _floating(module)
    if [tensor.shape for tensor in own.values()] != [t.shape for t in weights.values()]:
        return "unmatched"
    # Tensors that were made in inference mode can be written to in no other.
    with torch.inference_mode():
        for target, tensor in zip(own.values(), weights.values(), strict=True):
            target.copy_(tensor)
    return "ordered"


def _unlike(own: dict[str, Tensor], weights: dict[str, Tensor]) -> str:
    shapes = {tensor.shape for tensor in own.values()}
    in_order = dict(zip(weights, own.values(), strict=False)) if len(own) == len(weights) else {}
    for name, tensor in weights.items():
        if tensor.shape not in shapes:
            wanted, mine = list(tensor.shape), own.get(name, in_order.get(name))
            if mine is None:
                return f"it has no `{name}` of shape {wanted}, as the reference has"
            return f"its `{name}` has shape {list(mine.shape)}, the reference's {wanted}"
    return ""


def _derived(
    build: Callable[[], torch.nn.Module],
    kind: type,
    weights: dict[str, Tensor],
    changed: set[str],
    own: dict[str, Tensor],
) -> set[str]:
    """Which of the tensors that a constructor has changed follow from the weights.

    The constructor runs once more, under other weights: what comes out the same is only
    initialised.
    """
    generator = torch.Generator().manual_seed(_OTHER_SEED)
    others = {
        name: torch.empty(tensor.shape).uniform_(*_OTHERS, generator=generator)
        for name, tensor in weights.items()
    }
    with _filled_while_constructing(kind, others):
        beside = _floating(build())
    return {n for n in changed if n not in beside or not _same(own[n], beside[n])}


def _same(one: Tensor, other: Tensor) -> bool:
    return bool(one.dtype == other.dtype and torch.equal(one.cpu(), other.cpu()))


@contextmanager
def _filled_while_constructing(kind: type, weights: dict[str, Tensor]) -> Iterator[set[str]]:
    """While this lasts, what a module of class `kind` registers gets its weights at once, by name.

    So a constructor may derive tensors from its weights (transposed, fused, folded) and keep both.
    Yields the names that were filled so far.
    """
    filled: set[str] = set()

    def fill(name: str, tensor: Tensor | None) -> None:
        if tensor is None or name not in weights or tensor.shape != weights[name].shape:
            return
        with torch.inference_mode(tensor.is_inference()), torch.no_grad():
            tensor.copy_(weights[name])
        filled.add(name)

    def on_tensor(owner: torch.nn.Module, name: str, tensor: Tensor | None) -> None:
        if type(owner) is kind:
            fill(name, tensor)

    def on_module(owner: torch.nn.Module, name: str, child: torch.nn.Module | None) -> None:
        if type(owner) is kind and child is not None:
            for inner, tensor in [*child.named_parameters(), *child.named_buffers()]:
                fill(f"{name}.{inner}", tensor)

    hooks = [
        registration.register_module_parameter_registration_hook(on_tensor),
        registration.register_module_buffer_registration_hook(on_tensor),
        registration.register_module_module_registration_hook(on_module),
    ]
    try:
        yield filled
    finally:
        for hook in hooks:
            hook.remove()
