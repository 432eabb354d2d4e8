import torch
import torch.nn as nn


class Model(nn.Module):
    """Max pooling with overlapping windows and a padded border."""

    def __init__(self, kernel_size: int, stride: int, padding: int):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel_size, stride=stride, padding=padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, channels, height, width); the result is half as high and wide."""
        return self.pool(x)


CATEGORY = "pooling"
CPU_SIZES = {"batch": 8, "channels": 32, "height": 64, "width": 62}
HIDDEN_SIZES = [{"batch": 2, "channels": 3, "height": 17, "width": 31}]

batch = 64
channels = 128
height = 224
width = 226
kernel_size = 3
stride = 2
padding = 1


def get_inputs():
    # Mostly negative, so that a border of zeros would show.
    return [torch.randn(batch, channels, height, width) - 1.0]


def get_init_inputs():
    return [kernel_size, stride, padding]
