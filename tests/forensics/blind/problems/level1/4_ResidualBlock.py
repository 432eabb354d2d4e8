import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Down-sampling residual block with a projected shortcut."""

    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.short_conv = nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False)
        self.short_bn = nn.BatchNorm2d(out_channels)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = out + self.short_bn(self.short_conv(x))
        return F.relu(out)


def get_inputs():
    return [torch.randn(4, 8, 20, 20)]


def get_init_inputs():
    return [8, 16, 2]
