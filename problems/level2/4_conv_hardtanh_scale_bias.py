import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Convolution, hard tanh, a scale and a bias per channel, leaky ReLU."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, slope: float):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scale = nn.Parameter(torch.randn(out_channels, 1, 1))
        self.bias = nn.Parameter(torch.randn(out_channels, 1, 1))
        self.slope = slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_channels, height, width); the result is smaller by the kernel's rim."""
        x = F.hardtanh(self.conv(x), -1.0, 1.0)
        x = x * self.scale + self.bias
        return F.leaky_relu(x, self.slope)


CATEGORY = "convolution"
CPU_SIZES = {"batch": 8, "in_channels": 16, "out_channels": 48, "size": 72}

batch = 64
in_channels = 32
out_channels = 128
kernel_size = 3
size = 130
slope = 0.1


def get_inputs():
    return [2.0 * torch.randn(batch, in_channels, size, size)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, slope]
