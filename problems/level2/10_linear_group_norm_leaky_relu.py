import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Linear layer, group normalisation, leaky ReLU, and the sum with its own square."""

    def __init__(self, in_features: int, out_features: int, groups: int, slope: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.norm = nn.GroupNorm(groups, out_features)
        self.slope = slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_features); the result: (batch, out_features)."""
        x = F.leaky_relu(self.norm(self.linear(x)), self.slope)
        return x + x * x


CATEGORY = "matmul"
CPU_SIZES = {"batch": 500, "in_features": 512, "out_features": 768}

batch = 16384
in_features = 2048
out_features = 4096
groups = 16
slope = 0.02


def get_inputs():
    spread = torch.exp(0.5 * torch.randn(batch, 1))
    return [torch.randn(batch, in_features) * spread]


def get_init_inputs():
    return [in_features, out_features, groups, slope]
