import torch
from torch import nn


class Model(nn.Module):
    """How far a price has fallen below its highest value so far, and the worst fall so far."""

    def forward(self, returns: torch.Tensor) -> torch.Tensor:
        """returns: (series, steps), logarithmic; the result: (2, series, steps)."""
        price = torch.cumsum(returns, dim=1)
        peak = torch.cummax(price, dim=1).values
        fall = peak - price
        worst = torch.cummax(fall, dim=1).values
        return torch.stack([fall, worst])


CPU_SIZES = {"series": 500, "steps": 384}

series = 12288
steps = 4096


def get_inputs():
    volatility = 0.5 + torch.rand(series, 1)
    return [torch.randn(series, steps) * volatility]


def get_init_inputs():
    return []
