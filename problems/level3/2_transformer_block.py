import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """One causal transformer block: attention and a gated feed-forward, each with its norm."""

    def __init__(self, dim: int, heads: int, hidden: int):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.project = nn.Linear(dim, dim)
        self.feed_norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (batch, length, dim)."""
        batch, length, dim = x.shape
        q, k, v = self.qkv(self.attention_norm(x)).chunk(3, dim=-1)
        q, k, v = (
            t.view(batch, length, self.heads, dim // self.heads).transpose(1, 2) for t in (q, k, v)
        )
        scores = q @ k.transpose(-2, -1) / (dim // self.heads) ** 0.5
        causal = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        scores = scores.masked_fill(~causal, float("-inf"))
        mixed = (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(batch, length, dim)
        x = x + self.project(mixed)
        gate, value = self.up(self.feed_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * value)


CATEGORY = "attention"
CPU_SIZES = {"dim": 128, "heads": 4, "hidden": 256, "batch": 4, "length": 160}

dim = 1024
heads = 16
hidden = 2816
batch = 8
length = 1024


def get_inputs():
    return [torch.randn(batch, length, dim)]


def get_init_inputs():
    return [dim, heads, hidden]
