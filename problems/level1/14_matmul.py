import torch
import torch.nn as nn


class Model(nn.Module):
    """Product of two matrices whose sizes are no powers of two."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (m, k); b: (k, n); the result: (m, n)."""
        return torch.matmul(a, b)


CATEGORY = "matmul"
CPU_SIZES = {"m": 500, "k": 700, "n": 600}

m = 4000
k = 5000
n = 6000


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs():
    return []
