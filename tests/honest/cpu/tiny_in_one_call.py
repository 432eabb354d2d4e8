"""Is shorter than the signal that starts it.

problem: tiny
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.linear.weight.t()).tanh_()
