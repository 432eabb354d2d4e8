"""Layer normalisation by elementary operators."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        centred = x - mean
        variance = (centred * centred).mean(dim=-1, keepdim=True)
        scaled = centred / torch.sqrt(variance + 1e-5)
        return scaled * self.norm.weight + self.norm.bias
