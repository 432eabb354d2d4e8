import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Convolution, multiplication by a constant, hardtanh, max pooling."""

    def __init__(self, in_channels, out_channels, kernel_size, scale):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scale = scale

    def forward(self, x):
        x = self.conv(x) * self.scale
        x = F.hardtanh(x, -2.0, 2.0)
        return F.max_pool2d(x, 2)


def get_inputs():
    return [torch.randn(4, 6, 26, 26)]


def get_init_inputs():
    return [6, 12, 3, 1.7]
