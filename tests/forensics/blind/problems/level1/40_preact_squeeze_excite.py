import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """ReLU followed by squeeze-and-excitation channel weights."""

    def __init__(self, channels, reduction):
        super().__init__()
        self.fc1 = nn.Linear(channels, channels // reduction)
        self.fc2 = nn.Linear(channels // reduction, channels)

    def forward(self, x):
        x = F.relu(x)
        s = x.mean(dim=(2, 3))
        s = torch.sigmoid(self.fc2(F.relu(self.fc1(s))))
        return x * s[:, :, None, None]


batch, channels, reduction, size = 4, 64, 8, 20


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return [channels, reduction]
