import torch
import torch.nn as nn


class Model(nn.Module):
    """So small that calling it costs more than computing it."""

    def __init__(self, features: int):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))


features = 24


def get_inputs():
    return [torch.randn(16, features)]


def get_init_inputs():
    return [features]
