import torch
import torch.nn as nn


class Model(nn.Module):
    """Token and position tables, added, scaled and layer-normalised."""

    def __init__(self, vocabulary: int, length: int, dim: int):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.positions = nn.Embedding(length, dim)
        self.norm = nn.LayerNorm(dim)
        self.root = dim**0.5

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """tokens: (batch, length), int64; the result: (batch, length, dim)."""
        place = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) * self.root + self.positions(place)
        return self.norm(x)


CATEGORY = "index"
CPU_SIZES = {"vocabulary": 4000, "length": 256, "dim": 768, "batch": 16}

vocabulary = 32000
length = 2048
dim = 2048
batch = 64


def get_inputs():
    return [torch.randint(0, vocabulary, (batch, length))]


def get_init_inputs():
    return [vocabulary, length, dim]
