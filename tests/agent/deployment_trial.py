"""`python -m tests.agent.deployment_trial cpu|cuda [0|1|2]`: modules, from recording to undoing.

A part of a transformers model, one of a Sequential and one of a trained CNN are recorded, optimised
by the offline tuner, loaded, put in, measured, trained one step beside the original, and undone.
"""

from __future__ import annotations

import copy
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from typing import Any

import torch
from torch import nn
from transformers import LlamaConfig, LlamaModel

from agent.deployment.applied import apply
from agent.optimize import optimize

BUDGET = 2


class Residual(nn.Module):
    """Of a CNN: what follows its convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(x) + y)


class CNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.conv = nn.Conv2d(32, 32, 3, padding=1)
        self.residual = Residual(32)
        self.head = nn.Linear(32, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        return self.head(self.residual(self.conv(x), x).mean((2, 3)))


def trained_cnn(device: str) -> CNN:
    """It tells bright pictures from dark ones."""
    model = CNN().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(30):
        labels = torch.randint(0, 2, (64,), device=device)
        pictures = torch.randn(64, 3, 16, 16, device=device) + labels[:, None, None, None] - 0.5
        loss = nn.functional.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained: loss {loss.item():.2g}")
    return model.eval()


def models(device: str) -> Iterator[tuple[str, nn.Module, Any, str]]:
    """On a GPU of sizes that keep it busy."""
    large = device != "cpu"
    hidden, tokens = (4096, (4, 2048)) if large else (512, (4, 128))
    config = LlamaConfig(
        hidden_size=hidden, intermediate_size=2 * hidden, num_attention_heads=hidden // 128,
        num_key_value_heads=hidden // 256, num_hidden_layers=2, vocab_size=1000,
    )  # fmt: skip
    words = {"input_ids": torch.randint(0, 1000, tokens, device=device), "use_cache": False}
    yield "LlamaModel", LlamaModel(config).eval().to(device), words, "layers.0.input_layernorm"
    tail = nn.Sequential(nn.GELU(), nn.LayerNorm(1024))
    counts = (65536, 65536, 8192) if large else (2048, 2048, 256)
    rows = [(torch.randn(count, 512, device=device),) for count in counts]
    yield "Sequential", nn.Sequential(nn.Linear(512, 1024), tail).to(device), rows, "1"
    pictures = torch.randn(256 if large else 32, 3, 64, 64, device=device)
    yield "CNN, trained", trained_cnn(device), pictures, "residual"


def trained_alike(model: nn.Module, original: nn.Module, inputs: Any) -> str:
    """One step of each, from the same weights."""
    for each in (model.train(), original.train()):
        first = inputs[0][0] if isinstance(inputs, list) else inputs
        found = each(**inputs) if isinstance(inputs, dict) else each(first)
        torch.utils._pytree.tree_leaves(found)[0].square().mean().backward()
        torch.optim.SGD(each.parameters(), lr=0.1).step()
    pairs = zip(model.parameters(), original.parameters(), strict=True)
    apart = max(float((one - other).detach().abs().max()) for one, other in pairs)
    return f"one step of training moves the weights apart by {apart:.1e}"


def main(device: str, *only: str) -> None:
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")  # as most who run such models do
    for number, (title, model, inputs, name) in enumerate(models(device)):
        if only and str(number) not in only:
            continue
        original, parts = copy.deepcopy(model), dict(model.named_modules())
        print(f"\n{title}, {name}: {type(model.get_submodule(name)).__name__}")
        result = optimize(model, inputs, module=name, device=device, budget=BUDGET)
        said = [str(turn.evaluation.status) for turn in result.turns]
        print(f"turns: {', '.join(said)}; the kernel: {result.details.verdict.message}")
        applied = apply(model, result, inputs, keep="always")
        print(*applied.lines(), trained_alike(applied.model, original, inputs), sep="\n")
        assert applied.undo() is model and dict(model.named_modules()) == parts
        print("undone")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        main(*sys.argv[1:])
