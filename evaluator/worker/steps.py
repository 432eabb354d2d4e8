"""What is done to a module before a call of it, as programs do that use modules."""

from __future__ import annotations

from typing import Literal

import torch

Step = Literal["eval", "train", "to", "cast", "away", "other", "fill"]
"""`to`: to the device where it is. `cast`: there, in the task's dtype, as KernelBench does.
`away`: to another place and back, which makes new tensors of its parameters: on a GPU to the host,
on a CPU to copies. `other`: the instance that was kept takes its place. `fill`: free memory is
filled with `FILL_VALUE`, so that a result which is not written shows it.
"""
FILL_VALUE = 24576.0
"""A number of every floating-point dtype."""
_FILLED_BYTES = 2**23
_LARGEST_FILLED_BYTES = 2**26
_FEWEST = 4
"""Of each size so much, and so many blocks: an allocator prefers free ones that fit best."""
_FILLED_SIZES = range(7, 21)
"""Powers of two of fp32 numbers: 512 bytes to 4 MiB."""
Result = Literal["new", "keep", "kept"]
"""Which result of a call is returned: its own; its own, which is kept; or the one kept before."""
SourceText = Literal["file", "lines", "none"]
"""Where Python finds a source's text: in a file, as Triton needs it; in memory; or nowhere, as with
KernelBench, where what needs it, `torch.jit.script` for one, fails. Tracebacks always show it."""
Earlier = Literal["", "loaded", "kept"]
"""What becomes of a module when another one is constructed: nothing; its state is loaded into the
other one, which takes its place; or it is kept beside the other one."""


def fill_free_memory(
    layouts: list[tuple[torch.Size, torch.dtype]], device: str
) -> list[torch.Tensor]:
    """Leave `FILL_VALUE` in memory that is given back, of the sizes of these results and of others.

    What is returned lies behind it: while it is kept, a CPU's allocator gives none to the system.
    """
    if device != "cpu":
        torch.cuda.empty_cache()
    floating = [
        (shape, dtype)
        for shape, dtype in layouts
        if dtype.is_floating_point and shape.numel() * dtype.itemsize <= _LARGEST_FILLED_BYTES
    ]
    for shape, dtype in floating:
        # glibc takes blocks that are smaller than one that was freed from memory that it keeps.
        torch.empty((2, *shape), dtype=dtype, device=device)
    others = [(torch.Size([2**power]), torch.float32) for power in _FILLED_SIZES]
    behind = _last_filled(others, device)
    # These come last: the long list of the others leaves pointers where it lay.
    return _last_filled(floating, device) or behind


def _last_filled(layouts: list[tuple[torch.Size, torch.dtype]], device: str) -> list[torch.Tensor]:
    return [
        torch.full(shape, FILL_VALUE, dtype=dtype, device=device)
        for shape, dtype in layouts
        for _ in range(max(_FEWEST, _FILLED_BYTES // max(512, dtype.itemsize * shape.numel())))
    ][-1:]


def take(step: Step, module: torch.nn.Module, device: str, dtype: torch.dtype) -> None:
    match step:
        case "eval":
            module.eval()
        case "train":
            module.train()
        case "to":
            module.to(device)
        case "cast":
            module.to(device=device, dtype=dtype)
        case "away" if device == "cpu":
            module._apply(torch.clone)
        case "away":
            module.to("cpu").to(device)
        case "other" | "fill":
            raise AssertionError(f"{step} takes more than a module")
