import torch
import torch.nn as nn


class Model(nn.Module):
    """The largest element along a dimension and where it stands."""

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x: (batch, length, features); the results, (batch, features): values, int64 indices."""
        values, indices = torch.max(x, dim=self.dim)
        return values, indices


CATEGORY = "reduction"
CPU_SIZES = {"batch": 16, "length": 250, "features": 1000}

batch = 128
length = 1024
features = 4096
reduced = 1


def get_inputs():
    spread = torch.exp(torch.randn(batch, 1, features))
    return [torch.randn(batch, length, features) * spread]


def get_init_inputs():
    return [reduced]
