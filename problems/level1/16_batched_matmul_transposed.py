import torch
import torch.nn as nn


class Model(nn.Module):
    """Batched matrix product whose left factor is stored transposed."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (batch, k, m); b: (batch, k, n); the result: (batch, m, n)."""
        return torch.bmm(a.transpose(1, 2), b)


CATEGORY = "matmul"
CPU_SIZES = {"batch": 64, "k": 96, "m": 160, "n": 144}

batch = 256
k = 512
m = 768
n = 640


def get_inputs():
    spread = torch.exp(0.5 * torch.randn(batch, 1, 1))
    return [torch.randn(batch, k, m) * spread, torch.randn(batch, k, n)]


def get_init_inputs():
    return []
