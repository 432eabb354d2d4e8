import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """One MLP-mixer block: a perceptron across the tokens, then one across the channels."""

    def __init__(self, tokens: int, dim: int, token_hidden: int, dim_hidden: int):
        super().__init__()
        self.token_norm = nn.LayerNorm(dim)
        self.token_up = nn.Linear(tokens, token_hidden)
        self.token_down = nn.Linear(token_hidden, tokens)
        self.dim_norm = nn.LayerNorm(dim)
        self.dim_up = nn.Linear(dim, dim_hidden)
        self.dim_down = nn.Linear(dim_hidden, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (batch, tokens, dim)."""
        across = self.token_norm(x).transpose(1, 2)
        x = x + self.token_down(F.gelu(self.token_up(across))).transpose(1, 2)
        return x + self.dim_down(F.gelu(self.dim_up(self.dim_norm(x))))


CATEGORY = "network"
CPU_SIZES = {"tokens": 64, "dim": 192, "token_hidden": 96, "dim_hidden": 384, "batch": 12}

tokens = 196
dim = 768
token_hidden = 384
dim_hidden = 3072
batch = 128


def get_inputs():
    return [torch.randn(batch, tokens, dim)]


def get_init_inputs():
    return [tokens, dim, token_hidden, dim_hidden]
