import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim, hidden, shift):
        super().__init__()
        self.shift = shift
        self.hidden = hidden
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        h = F.layer_norm(self.up(x), (self.hidden,)).sub_(self.shift)
        inner = 0.7978845608028654 * (h + 0.044715 * h * h * h)
        a = 0.5 * h * (1.0 + torch.tanh(inner))
        return torch.matmul(a, self.down.weight.t())
