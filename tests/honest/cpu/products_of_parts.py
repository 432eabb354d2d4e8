"""Complex numbers by their real parts, into slices of an own buffer of complex numbers.

problem: complex_products
also: gpu
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        rows, cols = x.shape
        both = x.new_empty(rows, 2 * cols)
        product, spectrum = both[:, ::2], both[:, 1::2]
        (a, b), (c, d) = (torch.view_as_real(t).unbind(-1) for t in (x, y))
        parts = torch.view_as_real(product)
        torch.add(a * c, b * d, out=parts[..., 0])
        torch.sub(b * c, a * d, out=parts[..., 1])
        spectrum.copy_(torch.fft.fft(x.t(), dim=0).t())
        return product, spectrum
