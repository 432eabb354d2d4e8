"""Both outputs are views of one tensor.

problem: level2_6_add_layer_norm_gate
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, residual, gate):
        rows, dim = x.shape
        both = x.new_empty(rows, 2 * dim)
        gated, total = both.split(dim, dim=1)
        torch.add(x, residual, out=total)
        gated.copy_(self.norm(total)).mul_(torch.sigmoid(gate))
        return gated, total
