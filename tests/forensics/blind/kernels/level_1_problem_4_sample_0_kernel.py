import torch
import torch.nn as nn
import torch.nn.functional as F


def _bn(x, m, training=True):
    return F.batch_norm(
        x, m.running_mean, m.running_var, m.weight, m.bias, training, m.momentum, m.eps
    )


class ModelNew(nn.Module):
    """Residual block: strided view + 1x1 conv for the shortcut, in-place adds and ReLUs."""

    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.short_conv = nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False)
        self.short_bn = nn.BatchNorm2d(out_channels)
        self.stride = stride

    def forward(self, x):
        out = F.conv2d(x, self.conv1.weight, None, self.stride, 1)
        out = F.relu(_bn(out, self.bn1))
        out = F.conv2d(out, self.conv2.weight, None, 1, 1)
        out = _bn(out, self.bn2)
        # The shortcut is linear, so it collapses into a single 1x1 convolution.
        gain = self.short_bn.weight * torch.rsqrt(self.short_bn.running_var + self.short_bn.eps)
        shift = self.short_bn.bias - self.short_bn.running_mean * gain
        short = F.conv2d(x, self.short_conv.weight * gain.view(-1, 1, 1, 1), shift, self.stride)
        return F.relu(out + short)
