"""Writes into its input and returns it, as the reference does.

problem: changes_its_input
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.decay = nn.Parameter(torch.rand(dim))

    def forward(self, state, x):
        return torch.addcmul(x, state, self.decay, out=state)
