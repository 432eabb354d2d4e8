import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Decoder stage: transposed convolution, ELU, 3x3 convolution."""

    def __init__(self, in_channels, channels, out_channels):
        super().__init__()
        self.up = nn.ConvTranspose2d(in_channels, channels, 4, stride=2, padding=1)
        self.conv = nn.Conv2d(channels, out_channels, 3, padding=1)

    def forward(self, x):
        return self.conv(F.elu(self.up(x)))


batch, in_channels, channels, out_channels, size = 3, 32, 16, 3, 16


def get_inputs():
    return [torch.randn(batch, in_channels, size, size)]


def get_init_inputs():
    return [in_channels, channels, out_channels]
