import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """5x5 convolution, max pooling, softplus."""

    def __init__(self, in_channels, out_channels, kernel_size, pool):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.pool = nn.MaxPool2d(pool)

    def forward(self, x):
        return F.softplus(self.pool(self.conv(x)))


def get_inputs():
    return [torch.randn(4, 6, 28, 28)]


def get_init_inputs():
    return [6, 12, 5, 2]
