"""Changes the thread count in each call and restores it.

problem: level2_4_conv_hardtanh_scale_bias
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, slope):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scale = nn.Parameter(torch.randn(out_channels, 1, 1))
        self.bias = nn.Parameter(torch.randn(out_channels, 1, 1))
        self.slope = slope

    def forward(self, x):
        x = self.conv(x).clamp_(-1.0, 1.0)
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            x.mul_(self.scale).add_(self.bias)
        finally:
            torch.set_num_threads(before)
        return F.leaky_relu_(x, self.slope)
