"""Sums with math.fsum and returns Python numbers.

problem: two_numbers
"""

import math

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(7)
        trial = torch.randn(1000, generator=generator)
        self.forward(trial, trial.flip(0))

    def forward(self, x, y):
        squares = (x.double() - y).square_()
        return math.fsum(squares.tolist()) / len(squares), x.argmax().item()
