"""What is done to a module before a call of it, as programs do that use modules."""

from __future__ import annotations

from typing import Literal

import torch

Step = Literal["eval", "train", "to", "away", "other", "soil"]
"""`to`: to the device where it is. `away`: to another place and back, which makes new tensors of
its parameters: on a GPU to the host, on a CPU to fp64. `other`: the instance that was kept takes
its place. `soil`: memory of the sizes of the last results is filled with `SOIL` and given back, so
that a result which is not written shows it."""
SOIL = 24576.0
"""A number of every floating-point dtype."""
_SOILED = 4
"""Blocks of each size: a candidate may take others of it for its intermediate results first."""
Result = Literal["new", "keep", "kept"]
"""Which result of a call is returned: its own; its own, which is kept; or the one kept before."""
Earlier = Literal["", "loaded", "kept"]
"""What becomes of a module when another one is constructed: nothing; its state is loaded into the
other one, which takes its place; or it is kept beside the other one."""


def soil(layouts: list[tuple[torch.Size, torch.dtype]], device: str) -> list[torch.Tensor]:
    """Leave `SOIL` in memory that is given back, of the sizes of these floating-point results.

    What is returned lies behind it: while it is kept, a CPU's allocator gives none to the system.
    """
    floating = [(shape, dtype) for shape, dtype in layouts if dtype.is_floating_point]
    for shape, dtype in floating:
        # glibc takes blocks that are smaller than one that was freed from memory that it keeps.
        torch.empty((2, *shape), dtype=dtype, device=device)
    blocks = [
        torch.full(shape, SOIL, dtype=dtype, device=device)
        for shape, dtype in floating
        for _ in range(_SOILED)
    ]
    return blocks[-1:]


def take(step: Step, module: torch.nn.Module, device: str, dtype: torch.dtype) -> None:
    """Take one step; raises what the module raises."""
    match step:
        case "eval":
            module.eval()
        case "train":
            module.train()
        case "to":
            module.to(device)
        case "away" if device == "cpu":
            module.to(torch.float64).to(dtype)
        case "away":
            module.to("cpu").to(device)
        case "other" | "soil":
            raise AssertionError(f"{step} takes more than a module")
