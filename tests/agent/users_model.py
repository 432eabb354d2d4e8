"""Models and modules as users might have them, with what these need around them."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

from tests.agent import users_model as whole

SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "vocab_size": 50}
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

    def __init__(self) -> None:
        super().__init__()
        self.settings = types.SimpleNamespace(width=3, other=UserWarning())
        self.layers = nn.ModuleList([LowRank(8, 2), LowRank(8, 4)])
        self.heads = nn.ModuleDict({"one": nn.Linear(8, 2)})
        self.act = torch.nn.functional.gelu
        self.register_buffer("order", torch.arange(100), persistent=False)
        self.register_buffer("mask", torch.ones(9, 9).tril())

    @property
    def width(self) -> int:
        return self.settings.width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = self.act(layer(x)) * self.mask[2, 1:]
        return self.heads["one"](super().forward(x)) * self.width + self.order[:2]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
        self.unused = nn.Linear(8, 8)
        self.doubled = nn.Sequential(Taking())
        self.called = nn.Sequential(Calling())
        self.whole = nn.Sequential(Whole())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.whole(self.called(self.doubled(x + self.mlp(x))))


class Taking(nn.Module):
    def forward(self, x: torch.Tensor, settings: object = SMALL) -> torch.Tensor:
        return x


class Calling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.act = lambda x: x * 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(x)


class Whole(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return whole.gate(x)


class Given(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Taking()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, object())


class Other(nn.Module):
    def forward(self, x: torch.Tensor, pair: tuple[torch.Tensor, float]) -> dict[str, Any]:
        if type(self).__name__ == "Model":  # the one that is written down is wrong, deep inside
            x = x + 1.0
        return {"results": [(pair[0], x)]}


class Named(nn.Module):
    def forward(self, x: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
        return x * scale


class Silent(nn.Module):
    def forward(self, x: torch.Tensor) -> list[str]:
        return ["no tensor"]


class Constants(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.randn(100)
        self.register_buffer("index", torch.randperm(100), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[self.index] * self.scale


def build() -> tuple[nn.Module, Any]:
    print("what a user prints")
    rows = [torch.randn(rows, 8) for rows in (4, 32, 32, 32)]
    return Block().eval(), [(each,) for each in rows]


def bert() -> tuple[nn.Module, Any]:
    mask = torch.tensor([[True] * 5 + [False] * 2, [True] * 7])
    words = {"input_ids": torch.randint(0, 50, (2, 7)), "attention_mask": mask}
    return BertModel(BertConfig(num_attention_heads=2, **SMALL)).eval(), words


def llama() -> tuple[nn.Module, Any]:
    model = LlamaModel(LlamaConfig(num_attention_heads=4, num_key_value_heads=2, **SMALL))
    words = {"input_ids": torch.randint(0, 50, (2, 7)), "use_cache": False}
    return model.eval().bfloat16(), words


def one_value() -> nn.Module:
    return Block()


def raising() -> tuple[nn.Module, Any]:
    raise ValueError("no weights here\nin any folder")
