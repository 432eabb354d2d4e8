import torch
import torch.nn as nn


class Model(nn.Module):
    """3x3 convolution, batch normalisation, ReLU."""

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(
            in_channels, out_channels, kernel_size, padding=kernel_size // 2, bias=False
        )
        self.bn = nn.BatchNorm2d(out_channels)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


def get_inputs():
    return [torch.randn(8, 8, 24, 24)]


def get_init_inputs():
    return [8, 16, 3]
