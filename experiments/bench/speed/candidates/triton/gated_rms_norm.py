# problem: level2_8_gated_rms_norm
# expected: correct
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gated_rms_norm_kernel(x_ptr, z_ptr, w_ptr, y_ptr, dim, eps, limit, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * dim
    offsets = tl.arange(0, BLOCK)
    mask = offsets < dim
    x = tl.load(x_ptr + row + offsets, mask=mask, other=0.0)
    z = tl.load(z_ptr + row + offsets, mask=mask, other=0.0)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    x = x * z * tl.sigmoid(z)
    x = tl.minimum(tl.maximum(x, -limit), limit)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / dim + eps)
    tl.store(y_ptr + row + offsets, x * scale * w, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, dim: int, eps: float, limit: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps
        self.limit = limit

    def forward(self, x, z):
        x, z = x.contiguous(), z.contiguous()
        y = torch.empty_like(x)
        dim = x.shape[-1]
        rows = x.numel() // dim
        gated_rms_norm_kernel[(rows,)](
            x, z, self.weight, y, dim, self.eps, self.limit, BLOCK=triton.next_power_of_2(dim)
        )
        return y
