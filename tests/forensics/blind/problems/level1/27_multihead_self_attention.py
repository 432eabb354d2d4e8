import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Multi-head self-attention with a joint qkv projection."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.qkv(x).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-2, -1)) * (d // self.heads) ** -0.5
        out = att.softmax(dim=-1) @ v
        return self.proj(out.transpose(1, 2).reshape(b, t, d))


batch, tokens, dim, heads = 4, 48, 64, 4


def get_inputs():
    return [torch.randn(batch, tokens, dim)]


def get_init_inputs():
    return [dim, heads]
