import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Cosine of the angle between two vectors, for many pairs."""

    def __init__(self, eps: float):
        super().__init__()
        self.eps = eps

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a, b: (pairs, dim); the result: (pairs,)."""
        return F.cosine_similarity(a, b, dim=1, eps=self.eps)


CATEGORY = "reduction"
CPU_SIZES = {"pairs": 8000, "dim": 250}

pairs = 1048576
dim = 256
eps = 1e-8


def get_inputs():
    a = torch.randn(pairs, dim)
    # From nearly opposite to nearly equal.
    b = a * torch.randn(pairs, 1) + torch.randn(pairs, dim)
    return [a, b]


def get_init_inputs():
    return [eps]
