import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Basic residual block on sequences; activation after the sum."""

    def __init__(self, channels, kernel):
        super().__init__()
        self.conv1 = nn.Conv1d(channels, channels, kernel, padding=kernel // 2)
        self.conv2 = nn.Conv1d(channels, channels, kernel, padding=kernel // 2)

    def forward(self, x):
        h = F.leaky_relu(self.conv1(x), 0.1)
        return F.leaky_relu(self.conv2(h) + x, 0.1)


batch, channels, kernel, length = 4, 32, 5, 160


def get_inputs():
    return [torch.randn(batch, channels, length)]


def get_init_inputs():
    return [channels, kernel]
