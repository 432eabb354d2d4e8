"""Scales rows instead of multiplying; sets autocast and grad modes.

problem: level1_15_diag_matmul
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, diagonal, b):
        with torch.autocast("cpu", enabled=False), torch.inference_mode():
            return diagonal.unsqueeze(1) * b
