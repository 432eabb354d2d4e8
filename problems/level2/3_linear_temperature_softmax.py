import torch
import torch.nn as nn


class Model(nn.Module):
    """Linear layer, division by a temperature, softmax, and a weighting of the classes."""

    def __init__(self, in_features: int, out_features: int, temperature: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.temperature = temperature
        self.prior = nn.Parameter(torch.rand(out_features) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_features); the result: (batch, out_features)."""
        x = self.linear(x) / self.temperature
        return torch.softmax(x, dim=1) * self.prior


CATEGORY = "matmul"
CPU_SIZES = {"batch": 512, "in_features": 400, "out_features": 1000}

batch = 8192
in_features = 2048
out_features = 8192
temperature = 0.25


def get_inputs():
    return [torch.randn(batch, in_features)]


def get_init_inputs():
    return [in_features, out_features, temperature]
