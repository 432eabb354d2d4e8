import torch
import torch.nn as nn


class Model(nn.Module):
    """Sum over the middle dimension, which is not contiguous."""

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, length, features); the result: (batch, 1, features)."""
        return torch.sum(x, dim=self.dim, keepdim=True)


CATEGORY = "reduction"
CPU_SIZES = {"batch": 16, "length": 250, "features": 1000}

batch = 128
length = 2048
features = 2000
reduced = 1


def get_inputs():
    spread = torch.exp(torch.randn(batch, 1, features))
    return [torch.randn(batch, length, features) * spread]


def get_init_inputs():
    return [reduced]
