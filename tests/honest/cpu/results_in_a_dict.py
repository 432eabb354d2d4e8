"""Returns a nested dict with its keys in another order.

problem: named_results
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        results = {"largest": x.max(dim=1).values}
        half = x.shape[1] // 2
        low, high = x[:, :half].clamp(min=0.0), torch.exp(x[:, half:].abs().neg_())
        results["halves"] = (low, [high])
        results["mean"] = torch.einsum("rc->r", x) / x.shape[1]
        return results
