import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """RealNVP affine coupling layer: the first half sets scale and shift of the second."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.half = dim // 2
        self.fc1 = nn.Linear(self.half, hidden)
        self.fc2 = nn.Linear(hidden, 2 * (dim - self.half))

    def forward(self, x):
        a, b = x[:, : self.half], x[:, self.half :]
        s, t = self.fc2(F.relu(self.fc1(a))).chunk(2, dim=1)
        return torch.cat([a, b * torch.exp(torch.tanh(s)) + t], dim=1)


batch, dim, hidden = 256, 32, 64


def get_inputs():
    return [torch.randn(batch, dim)]


def get_init_inputs():
    return [dim, hidden]
