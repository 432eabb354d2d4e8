"""Copying the reference's parameters and buffers into a candidate: by name, else by order."""

from __future__ import annotations

from typing import Any, Literal

import torch

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
