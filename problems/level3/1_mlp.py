import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A perceptron with two hidden layers of different width."""

    def __init__(self, in_features: int, hidden: int, narrow: int, out_features: int):
        super().__init__()
        self.first = nn.Linear(in_features, hidden)
        self.second = nn.Linear(hidden, narrow)
        self.last = nn.Linear(narrow, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_features); the result: (batch, out_features)."""
        x = F.relu(self.first(x))
        x = F.gelu(self.second(x))
        return self.last(x)


CATEGORY = "network"
CPU_SIZES = {"batch": 400, "in_features": 512, "hidden": 1024, "narrow": 256, "out_features": 100}

batch = 8192
in_features = 2048
hidden = 4096
narrow = 1024
out_features = 1000


def get_inputs():
    return [torch.randn(batch, in_features)]


def get_init_inputs():
    return [in_features, hidden, narrow, out_features]
