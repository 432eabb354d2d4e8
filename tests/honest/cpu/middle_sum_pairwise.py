"""Pairwise sums, in place on its own temporaries.

problem: level1_8_middle_sum
pace: slow
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        length = x.shape[self.dim]
        half = (length + 1) // 2
        left = x.narrow(self.dim, 0, half).clone()
        left.narrow(self.dim, 0, length - half).add_(x.narrow(self.dim, half, length - half))
        while half > 1:
            length, half = half, (half + 1) // 2
            rest = left.narrow(self.dim, half, length - half)
            left = left.narrow(self.dim, 0, half)
            left.narrow(self.dim, 0, length - half).add_(rest)
        return left.clone()
