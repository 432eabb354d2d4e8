import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features, channels, dilation):
        super().__init__()
        self.conv = nn.Conv1d(features, channels, 5, dilation=dilation)
        self.bn = nn.BatchNorm1d(channels)
        self.eval()

    def forward(self, x):
        h = self.bn(self.conv(x)).relu_()
        var, mean = torch.var_mean(h, dim=2, unbiased=False)
        return torch.cat([mean, var.add_(1e-5).sqrt_()], dim=1)
