import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Token-mixing half of an MLP-Mixer layer."""

    def __init__(self, tokens, dim, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(tokens, hidden)
        self.fc2 = nn.Linear(hidden, tokens)

    def forward(self, x):
        h = self.norm(x).transpose(1, 2)
        h = self.fc2(F.gelu(self.fc1(h)))
        return x + h.transpose(1, 2)


batch, tokens, dim, hidden = 4, 49, 64, 96


def get_inputs():
    return [torch.randn(batch, tokens, dim)]


def get_init_inputs():
    return [tokens, dim, hidden]
