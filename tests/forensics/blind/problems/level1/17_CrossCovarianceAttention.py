import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Cross-covariance attention: softmax over channel-by-channel scores."""

    def __init__(self, dim, temperature):
        super().__init__()
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(dim, dim, bias=False)
        self.to_v = nn.Linear(dim, dim, bias=False)
        self.temperature = temperature

    def forward(self, x):
        q = F.normalize(self.to_q(x), dim=1)
        k = F.normalize(self.to_k(x), dim=1)
        v = self.to_v(x)
        scores = q.transpose(1, 2) @ k * self.temperature
        att = torch.softmax(scores, dim=-1)
        return (att @ v.transpose(1, 2)).transpose(1, 2)


def get_inputs():
    return [torch.randn(4, 50, 32)]


def get_init_inputs():
    return [32, 8.0]
