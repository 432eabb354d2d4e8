"""A Python ThreadPoolExecutor, made at import.

problem: level1_16_batched_matmul_transposed
"""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn

pool = ThreadPoolExecutor(max_workers=3)


def multiply(a, b, out):
    with torch.inference_mode():
        torch.bmm(a.transpose(1, 2), b, out=out)


class ModelNew(nn.Module):
    def forward(self, a, b):
        with torch.inference_mode():
            result = a.new_empty(a.shape[0], a.shape[2], b.shape[2])
        parts = zip(a.chunk(4), b.chunk(4), result.chunk(4), strict=True)
        for done in [pool.submit(multiply, *part) for part in parts]:
            done.result()
        return result
