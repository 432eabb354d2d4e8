import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Transformer feed-forward: linear, GELU, linear."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


def get_inputs():
    return [torch.randn(4, 48, 64)]


def get_init_inputs():
    return [64, 192]
