import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Convolutional stem: strided 7x7 convolution and hard-swish."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 7, stride=4, padding=3)

    def forward(self, x):
        return F.hardswish(self.conv(x))


batch, in_channels, out_channels, size = 4, 3, 32, 96


def get_inputs():
    return [torch.randn(batch, in_channels, size, size)]


def get_init_inputs():
    return [in_channels, out_channels]
