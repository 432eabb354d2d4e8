import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A small image classifier as it is served: its batch norms use stored statistics."""

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(width).eval()
        self.body = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False)
        self.body_norm = nn.BatchNorm2d(2 * width).eval()
        self.head = nn.Linear(2 * width * 16, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, 3, size, size); the result: (batch, classes)."""
        x = F.relu(self.stem_norm(self.stem(x)))
        x = F.max_pool2d(x, 2)
        x = F.relu(self.body_norm(self.body(x)))
        x = F.adaptive_avg_pool2d(x, 4)
        return self.head(torch.flatten(x, 1))


CATEGORY = "network"
CPU_SIZES = {"width": 16, "batch": 32, "size": 48}

width = 64
classes = 100
batch = 256
size = 96


def get_inputs():
    contrast = torch.exp(0.5 * torch.randn(batch, 1, 1, 1))
    return [torch.randn(batch, 3, size, size) * contrast]


def get_init_inputs():
    return [width, classes]
