import torch
import torch.nn as nn


class Model(nn.Module):
    """Transposed convolution that doubles the size, bias, clamp, scale."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, scale: float):
        super().__init__()
        self.conv = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, 2, 1, bias=False)
        self.bias = nn.Parameter(torch.randn(out_channels, 1, 1))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_channels, size, size); the result has out_channels and twice the size."""
        x = self.conv(x) + self.bias
        return torch.clamp(x, -1.0, 1.5) * self.scale


CATEGORY = "convolution"
CPU_SIZES = {"batch": 8, "in_channels": 32, "out_channels": 24, "size": 48}

batch = 64
in_channels = 64
out_channels = 32
kernel_size = 4
size = 96
scale = 2.5


def get_inputs():
    return [2.0 * torch.randn(batch, in_channels, size, size)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, scale]
