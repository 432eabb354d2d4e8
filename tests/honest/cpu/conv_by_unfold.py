"""Needs nine times the input's memory.

problem: level1_17_conv2d
pace: slow
"""

import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=kernel_size // 2)

    def forward(self, x):
        size = self.conv.kernel_size[0]
        columns = F.unfold(x, size, padding=size // 2)
        result = self.conv.weight.flatten(1) @ columns + self.conv.bias[:, None]
        return result.view(x.shape[0], -1, *x.shape[2:])
