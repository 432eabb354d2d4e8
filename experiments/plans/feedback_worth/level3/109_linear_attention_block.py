import torch
from torch import nn


class Model(nn.Module):
    """A block with gated linear attention over all places, then a squared-ReLU perceptron."""

    def __init__(self, dim: int, heads: int, hidden: int):
        super().__init__()
        self.heads = heads
        self.mixer_norm = nn.RMSNorm(dim, eps=1e-6)
        self.enter = nn.Linear(dim, 4 * dim, bias=False)
        self.head_norm = nn.RMSNorm(dim // heads, eps=1e-6)
        self.leave = nn.Linear(dim, dim, bias=False)
        self.feed_norm = nn.RMSNorm(dim, eps=1e-6)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (batch, length, dim)."""
        *parts, gate = self.enter(self.mixer_norm(x)).chunk(4, dim=2)
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts)
        q, k = nn.functional.elu(q) + 1.0, nn.functional.elu(k) + 1.0
        total = q @ k.sum(dim=2)[..., None]
        mixed = self.head_norm((q @ (k.transpose(2, 3) @ v)) / total)
        x = x + self.leave(mixed.transpose(1, 2).flatten(2) * torch.sigmoid(gate))
        return x + self.down(torch.relu(self.up(self.feed_norm(x))).square())


CPU_SIZES = {"dim": 64, "heads": 2, "hidden": 128, "batch": 2, "length": 100}

dim = 256
heads = 4
hidden = 768
batch = 16
length = 4096


def get_inputs():
    return [torch.randn(batch, length, dim)]


def get_init_inputs():
    return [dim, heads, hidden]
