import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Gated feed-forward network (SwiGLU)."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_inputs():
    return [torch.randn(2, 40, 48)]


def get_init_inputs():
    return [48, 128]
