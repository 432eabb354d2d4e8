import torch
import torch.nn as nn


class Model(nn.Module):
    """Upsampling block of a generator: transposed convolution, batch norm, tanh."""

    def __init__(self, in_channels, out_channels, kernel_size, stride):
        super().__init__()
        self.up = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=1
        )
        self.norm = nn.BatchNorm2d(out_channels)

    def forward(self, x):
        x = self.up(x)
        x = self.norm(x)
        return torch.tanh(x)


def get_inputs():
    return [torch.rand(4, 16, 12, 12)]


def get_init_inputs():
    return [16, 8, 4, 2]
