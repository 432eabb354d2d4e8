"""Parameters have other names; only their order matches.

problem: level1_3_channel_affine
"""

import torch
import torch.nn as nn


class Affine(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a = nn.Parameter(torch.randn(channels))
        self.b = nn.Parameter(torch.randn(channels))


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.inner = Affine(channels)

    def forward(self, x):
        a, b = self.inner.a.view(-1, 1, 1), self.inner.b.view(-1, 1, 1)
        return torch.addcmul(b, x, a)
