import math

import torch
import torch.nn as nn


class Model(nn.Module):
    """GELU in its tanh form, written out."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (batch, length, dim)."""
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


CATEGORY = "elementwise"
CPU_SIZES = {"batch": 8, "length": 128, "dim": 2048}

batch = 32
length = 2048
dim = 4096


def get_inputs():
    spread = torch.exp(0.5 * torch.randn(batch, length, 1))
    return [torch.randn(batch, length, dim) * spread]


def get_init_inputs():
    return []
