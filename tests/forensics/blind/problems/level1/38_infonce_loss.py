import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Per-sample InfoNCE loss between two projected views."""

    def __init__(self, dim, proj, temperature):
        super().__init__()
        self.temperature = temperature
        self.left = nn.Linear(dim, proj)
        self.right = nn.Linear(dim, proj)

    def forward(self, a, b):
        za = F.normalize(self.left(a), dim=1)
        zb = F.normalize(self.right(b), dim=1)
        logits = za @ zb.t() / self.temperature
        target = torch.arange(a.shape[0], device=a.device)
        return F.cross_entropy(logits, target, reduction="none")


batch, dim, proj, temperature = 128, 64, 32, 0.2


def get_inputs():
    return [torch.randn(batch, dim), torch.randn(batch, dim)]


def get_init_inputs():
    return [dim, proj, temperature]
