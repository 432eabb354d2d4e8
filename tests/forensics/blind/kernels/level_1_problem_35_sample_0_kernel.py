import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, channels, kernel):
        super().__init__()
        self.conv1 = nn.Conv1d(channels, channels, kernel, padding=kernel // 2)
        self.conv2 = nn.Conv1d(channels, channels, kernel, padding=kernel // 2)

    def forward(self, x):
        h = F.leaky_relu_(self.conv1(x), 0.1)
        h = F.leaky_relu_(self.conv2(h), 0.1)
        return h.add_(x)
