"""A causal transformer block, its attention with the scale moved to the queries."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.project = nn.Linear(dim, dim)
        self.feed_norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        batch, length, dim = x.shape
        width = dim // self.heads
        qkv = self.qkv(self.attention_norm(x)).view(batch, length, 3, self.heads, width)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = (q * width**-0.5) @ k.transpose(-2, -1)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, dim)
        x = x + self.project(mixed)
        gate, value = self.up(self.feed_norm(x)).chunk(2, dim=-1)
        return x + self.down(gate * torch.sigmoid(gate) * value)
