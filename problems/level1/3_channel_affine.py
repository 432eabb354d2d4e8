import torch
import torch.nn as nn


class Model(nn.Module):
    """A gain and a shift for each channel of a batch of images."""

    def __init__(self, channels: int):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(channels))
        self.shift = nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (batch, channels, height, width)."""
        return x * self.gain[:, None, None] + self.shift[:, None, None]


CATEGORY = "elementwise"
CPU_SIZES = {"batch": 16, "channels": 48, "height": 72, "width": 70}

batch = 128
channels = 256
height = 112
width = 112


def get_inputs():
    return [3.0 * torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels]
