import torch
import torch.nn as nn


class Model(nn.Module):
    """Softmax over the last dimension."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (rows, cols)."""
        return torch.softmax(x, dim=-1)


CATEGORY = "softmax"
CPU_SIZES = {"rows": 4000, "cols": 1000}

rows = 32768
cols = 12288


def get_inputs():
    # Flat rows and peaked ones.
    spread = torch.exp(torch.randn(rows, 1))
    return [torch.randn(rows, cols) * spread]


def get_init_inputs():
    return []
