import torch
import torch.nn as nn


class Model(nn.Module):
    """Residual sum, layer normalisation, and a sigmoid gate from another input."""

    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(
        self, x: torch.Tensor, residual: torch.Tensor, gate: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """All (rows, dim); the results: the gated norm, and the sum for the next layer."""
        total = x + residual
        return self.norm(total) * torch.sigmoid(gate), total


CATEGORY = "normalization"
CPU_SIZES = {"rows": 1300, "dim": 1000}

rows = 32768
dim = 4096


def get_inputs():
    spread = torch.exp(torch.randn(rows, 1))
    return [
        (torch.randn(rows, dim) + 0.5) * spread,
        torch.randn(rows, dim) * spread,
        2.0 * torch.randn(rows, dim),
    ]


def get_init_inputs():
    return [dim]
