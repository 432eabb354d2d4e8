"""What is done to a module before a call of it, as programs do that use modules."""

from __future__ import annotations

from typing import Literal

import torch

Step = Literal["eval", "train", "to", "away", "other"]
"""`to`: to the device where it is. `away`: to another place and back, which makes new tensors of
its parameters: on a GPU to the host, on a CPU to fp64. `other`: the instance that was kept takes
its place."""
Result = Literal["new", "keep", "kept"]
"""Which result of a call is returned: its own; its own, which is kept; or the one kept before."""
Earlier = Literal["", "loaded", "kept"]
"""What becomes of a module when another one is constructed: nothing; its state is loaded into the
other one, which takes its place; or it is kept beside the other one."""


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
        case "other":
            pass
