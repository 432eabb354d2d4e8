"""triton.autotune times variants at the first call.

problem: level1_4_softmax
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({}, num_warps=warps) for warps in (4, 8, 16)],
    key=["cols"],
)
@triton.jit
def softmax_kernel(x, y, cols, block: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    places = tl.arange(0, block)
    inside = places < cols
    row = tl.load(x + start + places, mask=inside, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + start + places, powers / tl.sum(powers, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rows, cols = x.shape
        softmax_kernel[(rows,)](x, y, cols, block=triton.next_power_of_2(cols))
        return y
