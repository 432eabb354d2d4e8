import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """TDNN layer of a speaker encoder: dilated conv1d, batch norm, ReLU, mean and std over time."""

    def __init__(self, features, channels, dilation):
        super().__init__()
        self.conv = nn.Conv1d(features, channels, 5, dilation=dilation)
        self.bn = nn.BatchNorm1d(channels)

    def forward(self, x):
        h = F.relu(self.bn(self.conv(x)))
        mean = h.mean(dim=2)
        std = torch.sqrt(h.var(dim=2, unbiased=False) + 1e-5)
        return torch.cat([mean, std], dim=1)


batch, features, channels, dilation, frames = 8, 40, 64, 2, 120


def get_inputs():
    return [torch.randn(batch, features, frames)]


def get_init_inputs():
    return [features, channels, dilation]
