import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Residual grouped convolution; multiplications by one are eliminated."""

    def __init__(self, channels, groups):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, groups=groups)
        self.groups = groups

    def forward(self, x):
        y = F.conv2d(x, self.conv.weight, self.conv.bias, padding=1, groups=self.groups)
        return x + y / (1.0 + y.abs())
