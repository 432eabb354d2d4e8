import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Pooling branch of an Inception block: average pool without padding in the count, 1x1 conv, ReLU."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.pool = nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)
        self.conv = nn.Conv2d(in_channels, out_channels, 1)

    def forward(self, x):
        return F.relu(self.conv(self.pool(x)))


batch, in_channels, out_channels, size = 4, 48, 32, 17


def get_inputs():
    return [torch.rand(batch, in_channels, size, size)]


def get_init_inputs():
    return [in_channels, out_channels]
