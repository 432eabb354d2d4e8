import torch
import torch.nn as nn


class Model(nn.Module):
    """Swish: every element times its own sigmoid."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (rows, cols)."""
        return x * torch.sigmoid(x)


CATEGORY = "elementwise"
CPU_SIZES = {"rows": 2000, "cols": 2050}

rows = 16384
cols = 16384


def get_inputs():
    spread = torch.exp(torch.randn(rows, 1))
    return [torch.randn(rows, cols) * spread]


def get_init_inputs():
    return []
