"""A custom autograd.Function, an atexit handler and a __del__.

problem: level1_23_gather_columns
"""

import atexit

import torch
import torch.nn as nn

finished = []
atexit.register(finished.clear)


class Scratch:
    def __init__(self, like):
        self.rows = torch.arange(like.shape[0])[:, None]

    def __del__(self):
        finished.append(1)


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, positions, weight):
        ctx.save_for_backward(positions, weight)
        scratch = Scratch(x)
        return x[scratch.rows, positions] * weight

    @staticmethod
    def backward(ctx, gradient):
        raise NotImplementedError


class ModelNew(nn.Module):
    def __init__(self, picks):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(picks))

    def forward(self, x, positions):
        return Gather.apply(x, positions, self.weight)
