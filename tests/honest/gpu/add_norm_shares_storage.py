"""Both outputs are strided views of one tensor.

problem: level2_6_add_layer_norm_gate
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, residual, gate):
        both = x.new_empty(x.shape[0], 2, x.shape[1])
        gated, total = both.unbind(1)
        torch.add(x, residual, out=total)
        torch.mul(self.norm(total), torch.sigmoid(gate), out=gated)
        return gated, total
