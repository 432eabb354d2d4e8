"""A folder of made-up problems in KernelBench's format, as many as a measurement asks for."""

from __future__ import annotations

from pathlib import Path

from agent.record.durable import write_once

_LEVELS = (100, 100)
"""Problems of the first levels, as KernelBench has them; the rest are level 3."""

_PROBLEM = '''\
import torch
import torch.nn as nn


class Model(nn.Module):
    """
    Scales each feature, normalises over the features, and applies {activation}.
    """

    def __init__(self, num_features: int, eps: float = 1e-5):
        super(Model, self).__init__()
        self.weight = nn.Parameter(torch.randn(num_features))
        self.bias = nn.Parameter(torch.randn(num_features))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """
        Args:
            x (torch.Tensor): Input of shape (batch_size, num_features).

        Returns:
            torch.Tensor: Output of the same shape.
        """
        x = x * self.weight + self.bias
        x = x / torch.sqrt(torch.mean(x * x, dim=1, keepdim=True) + self.eps)
        return {activation}(x) * {factor}


batch_size = {batch}
num_features = {features}


def get_inputs():
    return [torch.randn(batch_size, num_features)]


def get_init_inputs():
    return [num_features]
'''
_ACTIVATIONS = ("torch.relu", "torch.sigmoid", "torch.tanh")


def write_suite(folder: Path, problems: int) -> None:
    """Write `problems` files below `folder`, each with a text of its own; those there are kept."""
    for index in range(problems):
        level, number = _place(index)
        text = _PROBLEM.format(
            activation=_ACTIVATIONS[index % len(_ACTIVATIONS)],
            factor=1 + index / 1000,
            batch=128 + index,
            features=4096 + 16 * index,
        )
        write_once(folder / f"level{level}" / f"{number}_scaled_norm_{number}.py", text)


def _place(index: int) -> tuple[int, int]:
    """Level, and number within it, counted from 1."""
    for level, count in enumerate(_LEVELS, start=1):
        if index < count:
            return level, index + 1
        index -= count
    return len(_LEVELS) + 1, index + 1
