"""Returns copies where the reference returns views.

problem: views_of_inputs
pace: slow
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, scale):
        turned = torch.empty(x.shape[0], x.shape[2], x.shape[1])
        turned.copy_(x.transpose(1, 2), non_blocking=True)
        inner = x[:, 1:-1].to("cpu", non_blocking=True, copy=True)
        many = scale.repeat(x.shape[0], 1)
        return turned, inner.contiguous(), many, torch.einsum("blf,f->bl", x, scale)
