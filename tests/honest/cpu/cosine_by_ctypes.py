"""Calls libc through ctypes on its own tensors' addresses.

problem: level1_22_pairwise_cosine
pace: slow
"""

import ctypes

import torch
import torch.nn as nn

libc = ctypes.CDLL(None)
libc.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
libc.memcpy.restype = ctypes.c_void_p


class ModelNew(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, a, b):
        dots = torch.einsum("nd,nd->n", a, b)
        lengths = torch.linalg.vector_norm(a, dim=1), torch.linalg.vector_norm(b, dim=1)
        for length in lengths:
            length.clamp_(min=self.eps)
        cosines = dots.div_(lengths[0]).div_(lengths[1])
        result = torch.empty_like(cosines)
        libc.memcpy(result.data_ptr(), cosines.data_ptr(), cosines.numel() * 4)
        return result
