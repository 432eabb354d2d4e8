"""torch.jit.script, which optimises after the first calls.

problem: level1_2_gelu_tanh
"""

import warnings

import torch
import torch.nn as nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)

    @torch.jit.script
    def gelu(x: torch.Tensor) -> torch.Tensor:
        inner = 0.7978845608028654 * x * (1.0 + 0.044715 * x * x)
        return 0.5 * x * (1.0 + torch.tanh(inner))


class ModelNew(nn.Module):
    def forward(self, x):
        return gelu(x)
