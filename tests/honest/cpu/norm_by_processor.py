"""Reads /proc/cpuinfo and the environment; scales the table once.

problem: level2_12_embedding_position_norm
pace: slow
"""

import os
from pathlib import Path

import torch.nn as nn
import torch.nn.functional as F

try:
    flags = Path("/proc/cpuinfo").read_text()
except OSError:
    flags = ""
wide = "avx512" in flags and os.environ.get("NARROW") is None


class ModelNew(nn.Module):
    def __init__(self, vocabulary, length, dim):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.positions = nn.Embedding(length, dim)
        self.norm = nn.LayerNorm(dim)
        self.root = dim**0.5
        self.scaled = None

    def forward(self, tokens):
        if self.scaled is None:
            self.scaled = self.tokens.weight * self.root
        x = F.embedding(tokens, self.scaled)
        place = self.positions.weight[: tokens.shape[1]]
        x = x + place if wide else x.add_(place)
        return self.norm(x)
