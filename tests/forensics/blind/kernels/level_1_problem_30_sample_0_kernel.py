import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3)
        self.norm = nn.InstanceNorm2d(channels, affine=True, track_running_stats=True)

    def forward(self, x):
        n = self.norm
        h = self.conv(F.pad(x, (1, 1, 1, 1), mode="reflect"))
        h = F.instance_norm(
            h, n.running_mean, n.running_var, n.weight, n.bias, use_input_stats=False, eps=n.eps
        )
        return h.relu_().add_(x)
