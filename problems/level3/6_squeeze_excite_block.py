import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A residual block whose channels are weighted by what the whole image shows."""

    def __init__(self, channels: int, squeezed: int, groups: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(groups, channels)
        self.squeeze = nn.Linear(channels, squeezed)
        self.excite = nn.Linear(squeezed, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (batch, channels, size, size)."""
        y = self.norm(self.conv(F.relu(x)))
        weight = torch.amax(y, dim=(2, 3))
        weight = torch.sigmoid(self.excite(F.relu(self.squeeze(weight))))
        return x + y * weight[:, :, None, None]


CATEGORY = "network"
CPU_SIZES = {"channels": 32, "squeezed": 8, "groups": 4, "batch": 16, "size": 48}

channels = 128
squeezed = 32
groups = 16
batch = 64
size = 64


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return [channels, squeezed, groups]
