import torch
import torch.nn as nn


class Model(nn.Module):
    """Layer normalisation over the last dimension."""

    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (batch, length, dim)."""
        return self.norm(x)


CATEGORY = "normalization"
CPU_SIZES = {"batch": 8, "length": 256, "dim": 1920}

batch = 64
length = 2048
dim = 3072


def get_inputs():
    # Each row has a mean and a spread of its own.
    mean = torch.randn(batch, length, 1)
    spread = torch.exp(torch.randn(batch, length, 1))
    return [(torch.randn(batch, length, dim) + mean) * spread]


def get_init_inputs():
    return [dim]
