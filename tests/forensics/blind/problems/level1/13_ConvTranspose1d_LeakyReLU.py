import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Two-stage 1D upsampler of a vocoder."""

    def __init__(self, channels, kernel_size, stride):
        super().__init__()
        self.up1 = nn.ConvTranspose1d(
            channels, channels // 2, kernel_size, stride=stride, padding=stride // 2
        )
        self.up2 = nn.ConvTranspose1d(
            channels // 2, channels // 4, kernel_size, stride=stride, padding=stride // 2
        )

    def forward(self, x):
        x = F.leaky_relu(self.up1(x), 0.1)
        return torch.tanh(self.up2(x))


def get_inputs():
    return [torch.randn(4, 16, 50)]


def get_init_inputs():
    return [16, 4, 2]
