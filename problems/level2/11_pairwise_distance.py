import torch
import torch.nn as nn


class Model(nn.Module):
    """Euclidean distance from each point to each learned centre, and a kernel value from it."""

    def __init__(self, centres: int, dim: int, width: float):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(centres, dim))
        self.width = width

    def forward(self, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """points: (points, dim); the results, both (points, centres): distance and kernel."""
        squared = (
            torch.sum(points * points, dim=1, keepdim=True)
            + torch.sum(self.centres * self.centres, dim=1)
            - 2.0 * points @ self.centres.T
        )
        distance = torch.sqrt(torch.clamp(squared, min=0.0))
        return distance, torch.exp(-distance / self.width)


CATEGORY = "matmul"
CPU_SIZES = {"points": 2000, "centres": 500, "dim": 64}

points = 65536
centres = 2048
dim = 128
width = 8.0


def get_inputs():
    spread = torch.exp(0.5 * torch.randn(points, 1))
    return [torch.randn(points, dim) * spread]


def get_init_inputs():
    return [centres, dim, width]
