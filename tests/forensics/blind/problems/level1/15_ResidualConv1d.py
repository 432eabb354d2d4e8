import torch
import torch.nn as nn


class Model(nn.Module):
    """Causal residual conv1d block with a damped branch."""

    def __init__(self, channels, kernel_size, alpha):
        super().__init__()
        self.pad = nn.ConstantPad1d((kernel_size - 1, 0), 0.0)
        self.conv = nn.Conv1d(channels, channels, kernel_size)
        self.act = nn.Mish()
        self.mix = nn.Conv1d(channels, channels, 1)
        self.alpha = alpha

    def forward(self, x):
        y = self.mix(self.act(self.conv(self.pad(x))))
        return x + self.alpha * y


def get_inputs():
    return [torch.randn(6, 16, 120)]


def get_init_inputs():
    return [16, 3, 0.3]
