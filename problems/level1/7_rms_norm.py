import torch
import torch.nn as nn


class Model(nn.Module):
    """Root mean square normalisation with a weight per feature."""

    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (rows, dim)."""
        mean_square = torch.mean(x * x, dim=-1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.eps) * self.weight


CATEGORY = "normalization"
CPU_SIZES = {"rows": 2048, "dim": 2000}

rows = 32768
dim = 8192
eps = 1e-5


def get_inputs():
    spread = torch.exp(torch.randn(rows, 1))
    return [torch.randn(rows, dim) * spread]


def get_init_inputs():
    return [dim, eps]
