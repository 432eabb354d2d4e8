import torch
import torch.nn as nn


class Model(nn.Module):
    """3D convolution, batch norm, ReLU, 3D average pooling."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, 3, padding=1)
        self.bn = nn.BatchNorm3d(out_channels)
        self.pool = nn.AvgPool3d(2)

    def forward(self, x):
        return self.pool(torch.relu(self.bn(self.conv(x))))


def get_inputs():
    return [torch.randn(4, 3, 8, 12, 12)]


def get_init_inputs():
    return [3, 8]
