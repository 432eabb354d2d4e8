"""Returns the same buffer at every call.

problem: level1_3_channel_affine
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(channels))
        self.shift = nn.Parameter(torch.randn(channels))
        self.result = None

    def forward(self, x):
        if self.result is None or self.result.shape != x.shape:
            self.result = torch.empty_like(x)
        torch.mul(x, self.gain.view(-1, 1, 1), out=self.result)
        return self.result.add_(self.shift.view(-1, 1, 1))
