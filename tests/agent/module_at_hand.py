"""A module as a user of `optimize` might have it, with what it needs around it."""

from __future__ import annotations

import torch
from torch import nn

SCALE = 0.5
UNUSED = object()


def gate(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x) * SCALE


class Gated(nn.Module):
    """Gated: a norm and a gate."""

    def __init__(self, dim: int, eps: float = 1e-5):
        super(Gated, self).__init__()  # noqa: UP008  (the name has to be replaced here too)
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gate(self.drop(self.norm(x)))


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0


def make_inputs():
    rows = 6
    return [torch.randn(rows, 8)]


def make_inputs_from_outside():
    return [torch.randn(UNUSED, 8)]
