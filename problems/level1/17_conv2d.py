import torch
import torch.nn as nn


class Model(nn.Module):
    """A 3 x 3 convolution with bias."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=kernel_size // 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_channels, height, width); the result has out_channels."""
        return self.conv(x)


CATEGORY = "convolution"
CPU_SIZES = {"batch": 8, "in_channels": 32, "out_channels": 64, "height": 52, "width": 60}

batch = 32
in_channels = 64
out_channels = 128
kernel_size = 3
height = 128
width = 144


def get_inputs():
    return [torch.randn(batch, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
