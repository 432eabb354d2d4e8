"""What a user's file may hold for `--from FILE:FUNCTION`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "vocab_size": 50}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
        self.unused = nn.Linear(8, 8)
        self.doubled = nn.Sequential(Taking())
        self.called = nn.Sequential(Calling())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.called(self.doubled(x + self.mlp(x)))


class Taking(nn.Module):
    def forward(self, x: torch.Tensor, settings: object = SMALL) -> torch.Tensor:
        return x


class Calling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.act = lambda x: x * 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(x)


class Given(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Taking()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, object())


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


def with_object() -> tuple[nn.Module, Any]:
    return Given(), (torch.ones(2, 8),)


def without_source() -> tuple[nn.Module, Any]:
    made: dict[str, Any] = {}
    exec("import torch\nclass T(torch.nn.Module):\n  def forward(self, x):\n    return x", made)
    return made["T"](), (torch.ones(2),)


def other_shape() -> tuple[nn.Module, Any]:
    return Block(), torch.ones(2, 9)


def without_tensors() -> tuple[nn.Module, Any]:
    return Block(), "a text"


def one_value() -> nn.Module:
    return Block()


def raising() -> tuple[nn.Module, Any]:
    raise ValueError("no weights here\nin any folder")
