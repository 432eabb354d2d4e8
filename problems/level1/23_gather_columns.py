import torch
import torch.nn as nn


class Model(nn.Module):
    """From each row, the elements that the row's own list of positions names, weighted."""

    def __init__(self, picks: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(picks))

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """x: (rows, cols); positions: (rows, picks), int64; the result: (rows, picks)."""
        return torch.gather(x, 1, positions) * self.weight


CATEGORY = "index"
CPU_SIZES = {"rows": 3000, "cols": 700, "picks": 600}

rows = 16384
cols = 16384
picks = 4096


def get_inputs():
    spread = torch.exp(torch.randn(rows, 1))
    positions = torch.randint(0, cols, (rows, picks))
    return [torch.randn(rows, cols) * spread, positions]


def get_init_inputs():
    return [picks]
