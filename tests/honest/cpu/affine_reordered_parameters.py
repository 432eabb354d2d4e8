"""Parameters are in another order, beside an extra buffer.

problem: level1_3_channel_affine
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.shift = nn.Parameter(torch.empty(channels))
        self.register_buffer("ones", torch.ones(channels), persistent=False)
        self.gain = nn.Parameter(torch.empty(channels))

    def forward(self, x):
        gain = (self.ones * self.gain).view(1, -1, 1, 1)
        return x.mul(gain).add_(self.shift.view(1, -1, 1, 1))
