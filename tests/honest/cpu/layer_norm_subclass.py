"""A subclass of nn.LayerNorm, called through a forward hook.

problem: level1_6_layer_norm
pace: slow
"""

import torch
import torch.nn as nn


class CentredNorm(nn.LayerNorm):
    def forward(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        return centred.mul_(torch.rsqrt(variance + self.eps))


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = CentredNorm(dim)
        self.norm.register_forward_hook(self.scale)

    @staticmethod
    def scale(module, arguments, result):
        return result.mul_(module.weight).add_(module.bias)

    def forward(self, x):
        return self.norm(x)
