import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Pre-norm residual MLP with two hidden layers."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, dim)

    def forward(self, x):
        h = F.silu(self.fc1(self.norm(x)))
        h = F.silu(self.fc2(h))
        return x + self.fc3(h)


batch, tokens, dim, hidden = 4, 64, 96, 256


def get_inputs():
    return [torch.randn(batch, tokens, dim)]


def get_init_inputs():
    return [dim, hidden]
