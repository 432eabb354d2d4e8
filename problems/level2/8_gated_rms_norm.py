import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A branch gated by SiLU, clamped, RMS-normalised and weighted."""

    def __init__(self, dim: int, eps: float, limit: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps
        self.limit = limit

    def forward(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """x, z and the result: (batch, length, dim)."""
        x = x * F.silu(z)
        x = torch.clamp(x, -self.limit, self.limit)
        mean_square = x.pow(2).mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.eps) * self.weight


CATEGORY = "normalization"
CPU_SIZES = {"batch": 4, "length": 500, "dim": 1000}

batch = 32
length = 2048
dim = 4096
eps = 1e-6
limit = 4.0


def get_inputs():
    spread = torch.exp(torch.randn(batch, length, 1))
    return [torch.randn(batch, length, dim) * spread, 2.0 * torch.randn(batch, length, dim)]


def get_init_inputs():
    return [dim, eps, limit]
