"""Catches an exception and takes another path at every call.

problem: level2_9_conv_pool_bias_tanh
pace: slow
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, pool):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=kernel_size // 2)
        self.bias = nn.Parameter(torch.randn(out_channels, 1, 1))
        self.pool = pool

    def pooled(self, x):
        size = self.pool
        try:
            return x.view(-1, size).mean(dim=0).view(x.shape)
        except RuntimeError:
            blocks = x.unflatten(2, (-1, size)).unflatten(4, (-1, size))
            return blocks.mean(dim=(3, 5))

    def forward(self, x):
        return torch.tanh(self.pooled(self.conv(x)) + self.bias)
