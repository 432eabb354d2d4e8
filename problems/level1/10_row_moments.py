import torch
import torch.nn as nn


class Model(nn.Module):
    """Unbiased variance and mean of each row."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x: (rows, cols); the results: the variance (rows,), then the mean (rows,)."""
        variance, mean = torch.var_mean(x, dim=1)
        return variance, mean


CATEGORY = "reduction"
CPU_SIZES = {"rows": 4000, "cols": 384}

rows = 1048576
cols = 384


def get_inputs():
    # Heavy tails, and a mean of the size of the spread: a one-pass formula must be a stable one.
    x = torch.randn(rows, cols) * torch.exp(0.5 * torch.randn(rows, cols))
    return [(x + torch.randn(rows, 1)) * torch.exp(torch.randn(rows, 1))]


def get_init_inputs():
    return []
