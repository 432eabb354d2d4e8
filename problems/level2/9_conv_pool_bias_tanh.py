import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Convolution, average pooling, a bias per channel, tanh."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, pool: int):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=kernel_size // 2)
        self.bias = nn.Parameter(torch.randn(out_channels, 1, 1))
        self.pool = pool

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_channels, size, size); the result is smaller by the factor pool."""
        x = F.avg_pool2d(self.conv(x), self.pool)
        return torch.tanh(x + self.bias)


CATEGORY = "pooling"
CPU_SIZES = {"batch": 8, "in_channels": 12, "out_channels": 24, "size": 64}

batch = 64
in_channels = 32
out_channels = 64
kernel_size = 5
pool = 2
size = 128


def get_inputs():
    return [2.0 * torch.randn(batch, in_channels, size, size)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, pool]
