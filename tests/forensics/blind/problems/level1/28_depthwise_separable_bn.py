import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """MobileNet block: depthwise 3x3, batch norm, ReLU6, pointwise 1x1."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.depthwise = nn.Conv2d(
            in_channels, in_channels, 3, padding=1, groups=in_channels, bias=False
        )
        self.bn = nn.BatchNorm2d(in_channels)
        self.pointwise = nn.Conv2d(in_channels, out_channels, 1)

    def forward(self, x):
        return self.pointwise(F.relu6(self.bn(self.depthwise(x))))


batch, in_channels, out_channels, size = 4, 24, 40, 28


def get_inputs():
    return [torch.randn(batch, in_channels, size, size)]


def get_init_inputs():
    return [in_channels, out_channels]
