import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Running sum with a blocked scan: both blocks are scanned in parallel as one batch."""

    def __init__(self, dim, out_dim):
        super().__init__()
        self.proj = nn.Linear(dim, out_dim)
        self.norm = nn.LayerNorm(out_dim)
        self.out_dim = out_dim

    def forward(self, x):
        b, t, d = x.shape
        y = torch.addmm(self.proj.bias, x.reshape(b * t, d), self.proj.weight.t())
        if t % 2 == 0:
            y = y.view(b, 2, t // 2, self.out_dim).cumsum(dim=2).view(b, t, self.out_dim)
        else:
            y = y.view(b, t, self.out_dim).cumsum(dim=1)
        return F.layer_norm(y, (self.out_dim,), self.norm.weight, self.norm.bias, self.norm.eps)
