import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Attention pooling of a bag of instances (multiple-instance learning)."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.v = nn.Linear(dim, hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, x):
        s = self.score(torch.tanh(self.v(x))).squeeze(-1)
        a = torch.softmax(s, dim=1)
        return torch.einsum("bn,bnd->bd", a, x)


batch, instances, dim, hidden = 16, 48, 64, 32


def get_inputs():
    return [torch.randn(batch, instances, dim)]


def get_init_inputs():
    return [dim, hidden]
