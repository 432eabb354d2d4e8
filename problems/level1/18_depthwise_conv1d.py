import torch
import torch.nn as nn


class Model(nn.Module):
    """Each channel of a sequence convolved with a short causal filter of its own."""

    def __init__(self, channels: int, taps: int):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, taps, groups=channels, padding=taps - 1)
        self.taps = taps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (batch, channels, length)."""
        return self.conv(x)[:, :, : x.shape[2]]


CATEGORY = "convolution"
CPU_SIZES = {"batch": 16, "channels": 128, "length": 1950}
HIDDEN_SIZES = [
    {"batch": 3, "channels": 37, "length": 101, "taps": 7},
    {"batch": 1, "channels": 5, "length": 3},
]

batch = 32
channels = 2048
length = 4096
taps = 4


def get_inputs():
    return [torch.randn(batch, channels, length)]


def get_init_inputs():
    return [channels, taps]
