"""Conjugates by a bit beside the memory; its other results lie in each other's memory order.

problem: odd_memory
also: gpu
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, z):
        y = torch.relu(x)
        last = y.contiguous(memory_format=torch.channels_last)
        return torch.matmul(z, z).conj(), last, y.square()
