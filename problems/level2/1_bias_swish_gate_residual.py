import torch
import torch.nn as nn


class Model(nn.Module):
    """Bias, swish, a tanh gate, a scale per feature, and a residual: all pointwise."""

    def __init__(self, dim: int):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(dim))
        self.scale = nn.Parameter(torch.randn(dim))

    def forward(self, x: torch.Tensor, gate: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """x, gate, residual and the result: (rows, dim)."""
        x = x + self.bias
        x = x * torch.sigmoid(x)
        x = x * torch.tanh(gate)
        return residual + x * self.scale


CATEGORY = "fusion"
CPU_SIZES = {"rows": 1280, "dim": 1030}

rows = 16384
dim = 12288


def get_inputs():
    spread = torch.exp(0.5 * torch.randn(rows, 1))
    return [
        torch.randn(rows, dim) * spread,
        torch.randn(rows, dim),
        torch.randn(rows, dim),
    ]


def get_init_inputs():
    return [dim]
