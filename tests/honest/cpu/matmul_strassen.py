"""Strassen's algorithm: fewer operations and another error.

problem: level1_14_matmul
"""

import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, a, b):
        rows, columns = a.shape[0], b.shape[1]
        a = F.pad(a, (0, a.shape[1] % 2, 0, a.shape[0] % 2))
        b = F.pad(b, (0, b.shape[1] % 2, 0, b.shape[0] % 2))
        m, k, n = a.shape[0] // 2, a.shape[1] // 2, b.shape[1] // 2
        a11, a12, a21, a22 = a[:m, :k], a[:m, k:], a[m:, :k], a[m:, k:]
        b11, b12, b21, b22 = b[:k, :n], b[:k, n:], b[k:, :n], b[k:, n:]
        p1 = (a11 + a22) @ (b11 + b22)
        p2 = (a21 + a22) @ b11
        p3 = a11 @ (b12 - b22)
        p4 = a22 @ (b21 - b11)
        p5 = (a11 + a12) @ b22
        p6 = (a21 - a11) @ (b11 + b12)
        p7 = (a12 - a22) @ (b21 + b22)
        c = a.new_empty(2 * m, 2 * n)
        c[:m, :n] = p1 + p4 - p5 + p7
        c[:m, n:] = p3 + p5
        c[m:, :n] = p2 + p4
        c[m:, n:] = p1 - p2 + p3 + p6
        return c[:rows, :columns]
