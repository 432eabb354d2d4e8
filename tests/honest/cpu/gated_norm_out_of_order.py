"""Handles rows in a new random order at each call.

problem: level2_8_gated_rms_norm
pace: slow
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim, eps, limit):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps
        self.limit = limit

    def forward(self, x, z):
        flat, gate = x.flatten(0, 1), z.flatten(0, 1)
        result = torch.empty_like(flat)
        for rows in torch.randperm(len(flat)).split(500):
            part = (flat[rows] * F.silu(gate[rows])).clamp_(-self.limit, self.limit)
            scale = torch.rsqrt(part.square().mean(dim=1, keepdim=True) + self.eps)
            result[rows] = part.mul_(scale).mul_(self.weight)
        return result.view_as(x)
