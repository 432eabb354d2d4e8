"""Returns a transposed view, which is not contiguous.

problem: level1_16_batched_matmul_transposed
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.bmm(b.transpose(1, 2), a).transpose(1, 2)
