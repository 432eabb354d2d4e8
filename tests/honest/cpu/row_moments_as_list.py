"""Sums in double precision and returns a list for a tuple.

problem: level1_10_row_moments
pace: slow
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        wide = x.double()
        mean = wide.mean(dim=1)
        variance = (wide - mean[:, None]).square_().sum(dim=1) / (x.shape[1] - 1)
        return [variance.float(), mean.float()]
