"""Collects garbage in the call; makes large reference cycles.

problem: level2_5_conv_batch_norm_swish
pace: slow
"""

import gc

import torch
import torch.nn as nn
import torch.nn.functional as F


class Link:
    def __init__(self, tensor):
        self.tensor, self.me = tensor, self


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out_channels, track_running_stats=False)

    def forward(self, x):
        y = Link(self.conv(x)).tensor
        variance, mean = torch.var_mean(y, dim=(0, 2, 3), correction=0)
        scale = self.norm.weight * torch.rsqrt(variance + self.norm.eps)
        shift = self.norm.bias - mean * scale
        y = torch.addcmul(shift.view(-1, 1, 1), y, scale.view(-1, 1, 1))
        gc.collect(0)
        return F.silu(y, inplace=True)
