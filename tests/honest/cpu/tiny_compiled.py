"""torch.compile inside the candidate, with helper processes.

problem: tiny
pace: slow
"""

import torch
import torch.nn as nn


@torch.compile
def layer(x, weight, bias):
    return torch.tanh(x @ weight.t() + bias)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return layer(x, self.linear.weight, self.linear.bias)
