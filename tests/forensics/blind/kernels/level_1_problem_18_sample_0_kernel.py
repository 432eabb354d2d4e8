import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """The constant multiplication is folded into the convolution once; clamp after pooling."""

    def __init__(self, in_channels, out_channels, kernel_size, scale):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        with torch.no_grad():
            self.conv.weight.mul_(scale)
            self.conv.bias.mul_(scale)

    def forward(self, x):
        y = F.conv2d(x, self.conv.weight, self.conv.bias)
        # clamping is monotone, so it commutes with the maximum and runs on 1/4 of the data
        return F.max_pool2d(y, 2).clamp(-2.0, 2.0)
