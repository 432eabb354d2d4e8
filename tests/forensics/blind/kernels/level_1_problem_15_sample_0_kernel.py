import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Causal residual block: the damping is folded into the 1x1 mixing weights."""

    def __init__(self, channels, kernel_size, alpha):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, kernel_size)
        self.mix = nn.Conv1d(channels, channels, 1)
        self.left = kernel_size - 1
        self.alpha = alpha

    def forward(self, x):
        y = F.conv1d(F.pad(x, (self.left, 0)), self.conv.weight, self.conv.bias)
        y = F.mish(y)
        y = F.conv1d(y, self.mix.weight * self.alpha, self.mix.bias * self.alpha)
        return torch.add(x, y, alpha=self.alpha)
