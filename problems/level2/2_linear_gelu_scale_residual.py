import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Linear layer, GELU, a learned scale per feature, and a residual."""

    def __init__(self, dim: int):
        super().__init__()
        self.linear = nn.Linear(dim, dim)
        self.scale = nn.Parameter(torch.full((dim,), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (rows, dim)."""
        return x + self.scale * F.gelu(self.linear(x))


CATEGORY = "matmul"
CPU_SIZES = {"rows": 1200, "dim": 512}

rows = 16384
dim = 2048


def get_inputs():
    return [torch.randn(rows, dim)]


def get_init_inputs():
    return [dim]
