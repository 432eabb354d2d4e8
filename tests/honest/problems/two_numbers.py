import torch
import torch.nn as nn


class Model(nn.Module):
    """One number as a tensor without dimensions, one as Python's own."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple:
        return torch.mean((x - y).square()), int(torch.argmax(x.flatten()))


count = 250_000


def get_inputs():
    return [torch.randn(count), torch.randn(count)]


def get_init_inputs():
    return []
