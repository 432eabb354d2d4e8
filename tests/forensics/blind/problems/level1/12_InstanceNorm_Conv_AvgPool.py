import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Style block: affine instance norm, leaky ReLU, strided conv, average pooling."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.norm = nn.InstanceNorm2d(in_channels, affine=True)
        self.conv = nn.Conv2d(in_channels, out_channels, 3, stride=2, padding=1)
        self.pool = nn.AvgPool2d(2)

    def forward(self, x):
        x = F.leaky_relu(self.norm(x), 0.2)
        return self.pool(self.conv(x))


def get_inputs():
    return [torch.randn(4, 8, 24, 24)]


def get_init_inputs():
    return [8, 12]
