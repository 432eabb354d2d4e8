"""Modules as users of `optimize` might have them, with what these need around them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

SCALE = 0.5
UNUSED = object()


def gate(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x) * SCALE


class Gated(nn.Module):
    """Gated: a norm and a gate."""

    def __init__(self, dim: int, eps: float = 1e-5):
        super(Gated, self).__init__()  # noqa: UP008  (as many write it)
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gate(self.drop(self.norm(x)))


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0


class LowRank(nn.Linear):
    """Adds to what its base makes."""

    def __init__(self, size: int, rank: int) -> None:
        super().__init__(size, size)
        self.down = nn.Linear(size, rank, bias=False)
        self.up = nn.Linear(rank, size, bias=False)
        self.shift = nn.Parameter(torch.arange(float(size)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + self.up(self.down(x)) + self.shift


class Mixed(nn.Module):
    times = 3

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.times

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mix(x) + 1


class Stacked(Mixed):
    """Inherits, calls what it overrides, and holds modules, buffers and settings."""

    def __init__(self, settings: Any) -> None:
        super().__init__()
        self.settings = settings
        self.layers = nn.ModuleList([LowRank(8, 2), LowRank(8, 4)])
        self.heads = nn.ModuleDict({"one": nn.Linear(8, 2)})
        self.act = torch.nn.functional.gelu
        self.register_buffer("order", torch.arange(100), persistent=False)

    @property
    def width(self) -> int:
        return self.settings.width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = self.act(layer(x))
        return self.heads["one"](super().forward(x)) * self.width + self.order[:2]


def make_inputs():
    rows = 6
    return [torch.randn(rows, 8)]


def make_inputs_from_outside():
    return [torch.randn(UNUSED, 8)]
