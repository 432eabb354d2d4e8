import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Two halves of one tensor: SiLU of the first, times the second, biased and clamped."""

    def __init__(self, dim: int, limit: float):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(2 * dim))
        self.limit = limit

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, 2 * dim); the result: (rows, dim)."""
        gate, value = torch.chunk(x + self.bias, 2, dim=-1)
        value = torch.clamp(value, -self.limit, self.limit)
        return F.silu(gate) * value


CATEGORY = "fusion"
CPU_SIZES = {"rows": 1800, "dim": 1100}

rows = 16384
dim = 11008
limit = 7.0


def get_inputs():
    spread = torch.exp(torch.randn(rows, 1))
    return [torch.randn(rows, 2 * dim) * spread]


def get_init_inputs():
    return [dim, limit]
