import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows of a table, looked up by number."""

    def __init__(self, vocabulary: int, dim: int):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """tokens: (batch, length), int64; the result: (batch, length, dim)."""
        return self.table(tokens)


CATEGORY = "index"
CPU_SIZES = {"vocabulary": 8000, "dim": 500, "batch": 16, "length": 512}
HIDDEN_SIZES = [{"vocabulary": 97, "dim": 33, "batch": 3, "length": 7}]

vocabulary = 50000
dim = 2048
batch = 64
length = 4096


def get_inputs():
    return [torch.randint(0, vocabulary, (batch, length))]


def get_init_inputs():
    return [vocabulary, dim]
