"""Needs a temporary of hundreds of megabytes.

problem: level2_11_pairwise_distance
pace: slow
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, centres, dim, width):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(centres, dim))
        self.width = width

    def forward(self, points):
        difference = points[:, None, :] - self.centres
        distance = difference.square_().sum(dim=2).sqrt_()
        return distance, torch.exp(distance / -self.width)
