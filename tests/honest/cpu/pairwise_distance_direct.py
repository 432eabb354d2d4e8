"""Is more exact than the reference.

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
        mode = "donot_use_mm_for_euclid_dist"
        distance = torch.cdist(points, self.centres, compute_mode=mode)
        return distance, torch.exp(distance.neg() / self.width)
