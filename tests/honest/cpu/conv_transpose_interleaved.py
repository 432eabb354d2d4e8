"""Builds a transposed convolution from four small ones.

problem: level2_16_conv_transpose_bias_clamp
pace: slow
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scale):
        super().__init__()
        self.conv = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, 2, 1, bias=False)
        self.bias = nn.Parameter(torch.randn(out_channels, 1, 1))
        self.scale = scale

    def forward(self, x):
        batch, _, height, width = x.shape
        weight = self.conv.weight.transpose(0, 1).flip(2, 3)
        work = x.new_empty(2, 2, batch, weight.shape[0], height, width)
        for i in range(2):
            for j in range(2):
                taps = weight[:, :, i::2, j::2]
                padded = F.pad(x, (1 - j, j, 1 - i, i))
                work[i, j] = F.conv2d(padded, taps)
        work.add_(self.bias).clamp_(-1.0, 1.5).mul_(self.scale)
        return work.permute(2, 3, 4, 0, 5, 1).reshape(batch, -1, 2 * height, 2 * width)
