import torch
import torch.nn as nn


class Model(nn.Module):
    """Flatten patches, layer norm, linear embedding, ELU."""

    def __init__(self, channels, patch, dim):
        super().__init__()
        self.norm = nn.LayerNorm(channels * patch * patch)
        self.embed = nn.Linear(channels * patch * patch, dim)
        self.act = nn.ELU()

    def forward(self, x):
        x = torch.flatten(x, 1)
        return self.act(self.embed(self.norm(x)))


def get_inputs():
    return [torch.rand(32, 3, 8, 8)]


def get_init_inputs():
    return [3, 8, 64]
