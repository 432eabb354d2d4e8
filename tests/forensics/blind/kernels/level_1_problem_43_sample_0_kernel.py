import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, factor, gain):
        super().__init__()
        self.factor = factor
        self.conv = nn.Conv2d(in_channels, out_channels * factor * factor, 3, padding=1)
        # the gain is part of the convolution from here on
        with torch.no_grad():
            self.conv.weight.mul_(gain)
            self.conv.bias.mul_(gain)

    def forward(self, x):
        y = self.conv(x)
        b, c, h, w = y.shape
        f = self.factor
        y = y.view(b, c // (f * f), f, f, h, w).permute(0, 1, 4, 2, 5, 3)
        return y.reshape(b, c // (f * f), h * f, w * f)
