"""A Python generator keeps the last sum between blocks.

problem: level1_20_cumsum
pace: slow
"""

import torch
import torch.nn as nn


def blocks(x, width):
    before = x.new_zeros(x.shape[0], 1)
    for part in x.split(width, dim=1):
        sums = torch.cumsum(part, dim=1).add_(before)
        before = sums[:, -1:]
        yield sums


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.cat(list(blocks(x, 128)), dim=self.dim)
