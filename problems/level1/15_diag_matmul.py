import torch
import torch.nn as nn


class Model(nn.Module):
    """Product of a diagonal matrix, given by its diagonal, and a full one."""

    def forward(self, diagonal: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """diagonal: (n,); b: (n, m); the result: (n, m)."""
        return torch.diag(diagonal) @ b


CATEGORY = "matmul"
CPU_SIZES = {"n": 800, "m": 800}

n = 4096
m = 4096


def get_inputs():
    return [torch.randn(n), torch.randn(n, m)]


def get_init_inputs():
    return []
