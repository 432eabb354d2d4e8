"""Triton on views, with padded output rows.

problem: level2_13_swiglu
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swiglu_kernel(x, bias, y, dim, stride, limit, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    places = tl.program_id(1) * block + tl.arange(0, block)
    inside = places < dim
    gate = tl.load(x + row * 2 * dim + places, mask=inside)
    gate += tl.load(bias + places, mask=inside)
    value = tl.load(x + row * 2 * dim + dim + places, mask=inside)
    value += tl.load(bias + dim + places, mask=inside)
    value = tl.minimum(tl.maximum(value, -limit), limit)
    tl.store(y + row * stride + places, gate * tl.sigmoid(gate) * value, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, dim, limit):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(2 * dim))
        self.dim = dim
        self.limit = limit

    def forward(self, x):
        y = x.new_empty(x.shape[0], self.dim + 64)
        grid = (x.shape[0], triton.cdiv(self.dim, 1024))
        swiglu_kernel[grid](x, self.bias, y, self.dim, y.stride(0), self.limit, block=1024)
        return y[:, : self.dim]
