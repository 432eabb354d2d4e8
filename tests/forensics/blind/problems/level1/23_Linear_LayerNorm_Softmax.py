import torch
import torch.nn as nn


class Model(nn.Module):
    """Token router: linear, layer norm, softmax over experts."""

    def __init__(self, dim, experts):
        super().__init__()
        self.router = nn.Linear(dim, experts)
        self.ln = nn.LayerNorm(experts)

    def forward(self, x):
        return torch.softmax(self.ln(self.router(x)), dim=-1)


def get_inputs():
    return [torch.rand(8, 30, 40)]


def get_init_inputs():
    return [40, 16]
