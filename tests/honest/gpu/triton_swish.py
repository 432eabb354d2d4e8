"""Triton compiles at the first call, in the candidate's process.

problem: level1_1_swish
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x, y, n, block: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = places < n
    value = tl.load(x + places, mask=inside)
    tl.store(y + places, value * tl.sigmoid(value), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        swish_kernel[(triton.cdiv(n, 2048),)](x, y, n, block=2048)
        return y
