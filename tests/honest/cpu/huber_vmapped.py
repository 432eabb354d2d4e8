"""Uses torch.func.vmap under inference_mode.

problem: level1_12_huber_loss
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, delta):
        super().__init__()
        self.delta = delta

    def one(self, prediction, target):
        size = (prediction - target).abs()
        small = size.clamp(max=self.delta)
        return (small * (size - 0.5 * small)).mean()

    @torch.inference_mode()
    def forward(self, prediction, target):
        return torch.func.vmap(self.one)(prediction, target)
