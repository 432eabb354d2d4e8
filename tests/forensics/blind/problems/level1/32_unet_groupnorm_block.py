import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Diffusion U-Net block: conv, group norm, SiLU, conv."""

    def __init__(self, in_channels, channels, groups):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(groups, channels)
        self.conv2 = nn.Conv2d(channels, in_channels, 3, padding=1)

    def forward(self, x):
        return self.conv2(F.silu(self.norm(self.conv1(x))))


batch, in_channels, channels, groups, size = 2, 16, 32, 8, 24


def get_inputs():
    return [torch.randn(batch, in_channels, size, size)]


def get_init_inputs():
    return [in_channels, channels, groups]
