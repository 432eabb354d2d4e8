import torch
import torch.nn as nn


class Model(nn.Module):
    """Attention scores: scaled, biased per head and distance, masked, softmaxed."""

    def __init__(self, heads: int, length: int, scale: float):
        super().__init__()
        self.scale = scale
        self.bias = nn.Parameter(torch.randn(heads, length, length))

    def forward(self, scores: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        """scores and the result: (batch, heads, length, length); keep: (batch, length), bool."""
        scores = scores * self.scale + self.bias
        scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
        return torch.softmax(scores, dim=-1)


CATEGORY = "softmax"
CPU_SIZES = {"batch": 8, "heads": 8, "length": 250}

batch = 8
heads = 16
length = 1536
scale = 0.125


def get_inputs():
    scores = 16.0 * torch.randn(batch, heads, length, length)
    keep = torch.rand(batch, length) > 0.3
    keep[:, 0] = True
    return [scores, keep]


def get_init_inputs():
    return [heads, length, scale]
