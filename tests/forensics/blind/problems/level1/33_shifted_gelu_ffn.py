import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Sparse feed-forward layer: normalised expansion, shifted GELU, projection without bias."""

    def __init__(self, dim, hidden, shift):
        super().__init__()
        self.shift = shift
        self.hidden = hidden
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        h = F.layer_norm(self.up(x), (self.hidden,))
        return self.down(F.gelu(h - self.shift))


batch, tokens, dim, hidden, shift = 4, 50, 64, 192, 2.0


def get_inputs():
    return [torch.randn(batch, tokens, dim)]


def get_init_inputs():
    return [dim, hidden, shift]
