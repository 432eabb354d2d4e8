"""NumPy works on the tensors' memory without a copy.

problem: level1_7_rms_norm
"""

import numpy as np
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        rows = x.numpy()
        mean_square = np.einsum("rc,rc->r", rows, rows) / np.float32(rows.shape[1])
        scale = np.reciprocal(np.sqrt(mean_square + np.float32(self.eps)))
        result = rows * scale[:, None]
        result *= self.weight.detach().numpy()
        return torch.from_numpy(result)
