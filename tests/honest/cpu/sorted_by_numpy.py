"""Outputs of four dtypes, some from NumPy, one with gaps.

problem: mixed_dtypes
"""

import numpy as np
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        places = torch.from_numpy(np.argsort(x.numpy(), axis=1, kind="stable"))
        values = torch.take_along_dim(x, places, dim=1)
        roots = torch.zeros(x.shape[0], 2 * x.shape[1], dtype=torch.float16)[:, ::2]
        roots.copy_(x.abs().sqrt_())
        wide = x.to(torch.float64)
        return (
            values,
            places,
            torch.gt(x, 0.5),
            roots,
            torch.einsum("rc,rc->r", wide, wide) / x.shape[1],
        )
