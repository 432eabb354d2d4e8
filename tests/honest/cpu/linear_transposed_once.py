"""Transposes its weight at the first forward, under a lock.

problem: level2_2_linear_gelu_scale_residual
"""

import threading

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)
        self.scale = nn.Parameter(torch.full((dim,), 0.1))
        self.lock = threading.Lock()
        self.prepared = None

    def weight(self):
        with self.lock:
            if self.prepared is None:
                dim = self.linear.in_features
                self.prepared = self.linear.weight.new_zeros(dim, dim + 64)
                self.prepared[:, :dim] = self.linear.weight.t()
            return self.prepared[:, : self.linear.in_features]

    def forward(self, x):
        y = torch.addmm(self.linear.bias, x, self.weight())
        return torch.addcmul(x, self.scale, F.gelu(y))
