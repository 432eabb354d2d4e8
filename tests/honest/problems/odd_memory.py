import torch
import torch.nn as nn


class Model(nn.Module):
    """A conjugate, a result in the usual memory order, and one with its channels last."""

    def forward(self, x: torch.Tensor, z: torch.Tensor) -> tuple:
        y = torch.relu(x)
        last = y.square().contiguous(memory_format=torch.channels_last)
        return torch.conj_physical(torch.matmul(z, z)), y, last


def get_inputs():
    return [torch.randn(8, 48, 40, 40), torch.randn(192, 192, dtype=torch.complex64)]


def get_init_inputs():
    return []
