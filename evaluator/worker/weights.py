"""Copying the reference's parameters and buffers into a candidate: by name, else by order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch.nn.modules import module as registration

from evaluator.worker.memory import tensor_at

Fit = Literal["none", "named", "ordered", "seeded"]
FITS: tuple[Fit, ...] = ("none", "named", "ordered", "seeded")
"""By code, as they cross the wire."""


def load_weights(
    module: torch.nn.Module, layouts: list[dict[str, Any]], memory: torch.Tensor
) -> Fit:
    """Copy the floating tensors that `layouts` name into `module`, and say how they fitted.

    `named`: every one has a namesake of its shape. `ordered`: as many, of the same shapes, in the
    same order. `seeded`: neither, nothing was copied, and the public seed alone decides.
    """
    if not layouts:
        return "none"
    own = {
        name: tensor
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]
        if tensor.is_floating_point() or tensor.is_complex()
    }
    shapes = [tuple(layout["shape"]) for layout in layouts]
    names = [layout["name"] for layout in layouts]
    if all(n in own and tuple(own[n].shape) == s for n, s in zip(names, shapes, strict=True)):
        targets, fit = [own[name] for name in names], "named"
    elif [tuple(tensor.shape) for tensor in own.values()] == shapes:
        targets, fit = list(own.values()), "ordered"
    else:
        return "seeded"
    with torch.no_grad():
        for target, layout in zip(targets, layouts, strict=True):
            target.copy_(tensor_at(memory, layout))
    return "named" if fit == "named" else "ordered"


@contextmanager
def weights_while_constructing(
    kind: type, layouts: list[dict[str, Any]], memory: torch.Tensor
) -> Iterator[set[str]]:
    """While this lasts, what a module of class `kind` registers gets its weights at once, by name.

    So a constructor may derive tensors from its weights (transposed, fused, folded) and keep both.
    Yields the names that were filled so far.
    """
    waiting = {layout["name"]: layout for layout in layouts}
    filled: set[str] = set()

    def fill(name: str, tensor: torch.Tensor | None) -> None:
        layout = waiting.get(name)
        if layout is None or tensor is None or tuple(tensor.shape) != tuple(layout["shape"]):
            return
        with torch.no_grad():
            tensor.copy_(tensor_at(memory, layout))
        filled.add(name)

    def on_tensor(owner: torch.nn.Module, name: str, tensor: torch.Tensor | None) -> None:
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
