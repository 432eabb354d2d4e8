import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """1D convolution over a signal, batch norm, exact GELU."""

    def __init__(self, in_channels, out_channels, kernel_size, dilation):
        super().__init__()
        self.conv = nn.Conv1d(in_channels, out_channels, kernel_size, dilation=dilation)
        self.bn = nn.BatchNorm1d(out_channels)

    def forward(self, x):
        return F.gelu(self.bn(self.conv(x)))


def get_inputs():
    return [torch.randn(8, 12, 200)]


def get_init_inputs():
    return [12, 24, 5, 2]
