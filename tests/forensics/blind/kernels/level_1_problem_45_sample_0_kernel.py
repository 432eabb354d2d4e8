import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels, channels, out_channels):
        super().__init__()
        self.up = nn.ConvTranspose2d(in_channels, channels, 4, stride=2, padding=1)
        self.conv = nn.Conv2d(channels, out_channels, 3, padding=1)

    def forward(self, x):
        h = F.conv_transpose2d(x, self.up.weight, stride=2, padding=1)
        h = F.elu_(h)
        return F.conv2d(h, self.conv.weight, self.conv.bias, padding=1)
