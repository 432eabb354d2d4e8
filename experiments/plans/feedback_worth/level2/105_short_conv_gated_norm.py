import torch
from torch import nn


class Model(nn.Module):
    """A short causal filter of each channel over time, RMS norm within groups, and a gate."""

    def __init__(self, channels: int, taps: int, groups: int, eps: float):
        super().__init__()
        self.filter = nn.Conv1d(channels, channels, taps, padding=taps - 1, groups=channels)
        self.scale = nn.Parameter(1.0 + 0.1 * torch.randn(channels))
        self.groups = groups
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, length, 2 * channels), values before gates; the result: half as wide."""
        length = x.shape[1]
        value, gate = x.chunk(2, dim=2)
        value = self.filter(value.transpose(1, 2))[:, :, :length].transpose(1, 2)
        value = nn.functional.silu(value).unflatten(2, (self.groups, -1))
        value = value * torch.rsqrt(value.square().mean(dim=3, keepdim=True) + self.eps)
        return value.flatten(2) * self.scale * nn.functional.silu(gate)


CPU_SIZES = {"batch": 2, "length": 100, "channels": 256}

batch = 8
length = 4096
channels = 2048
taps = 4
groups = 16


def get_inputs():
    return [torch.randn(batch, length, 2 * channels)]


def get_init_inputs():
    return [channels, taps, groups, 1e-5]
