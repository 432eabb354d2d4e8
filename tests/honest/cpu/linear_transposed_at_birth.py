"""The constructor keeps a transposed copy of a weight.

problem: level2_2_linear_gelu_scale_residual
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)
        self.scale = nn.Parameter(torch.full((dim,), 0.1))
        self.register_buffer("transposed", self.linear.weight.detach().t().contiguous())

    def forward(self, x):
        y = torch.addmm(self.linear.bias, x, self.transposed)
        return torch.addcmul(x, self.scale, F.gelu(y))
