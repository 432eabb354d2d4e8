"""Imports for seconds; prints, logs and warns in every call.

problem: level2_1_bias_swish_gate_residual
"""

import logging
import os
import sys
import time
import warnings

import torch
import torch.nn as nn

logging.basicConfig(level=logging.DEBUG)
print("preparing ...", flush=True)
time.sleep(2.5)
print("done", file=sys.stderr)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(dim))
        self.scale = nn.Parameter(torch.randn(dim))
        print("ModelNew of", dim, "features", "." * 100_000)

    def forward(self, x, gate, residual):
        print("forward", tuple(x.shape))
        logging.info("first element: %s", x[0, 0].item())
        warnings.warn("this is only a warning", stacklevel=1)
        os.write(2, b"raw bytes to stderr\n")
        x = x + self.bias
        return torch.addcmul(residual, nn.functional.silu(x) * torch.tanh(gate), self.scale)
