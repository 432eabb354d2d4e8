import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.spatial = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim)
        self.widen = nn.Linear(dim, 4 * dim)
        self.gain = nn.Parameter(0.5 * torch.randn(4 * dim))
        self.shift = nn.Parameter(0.1 * torch.randn(4 * dim))
        self.narrow = nn.Linear(4 * dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.spatial(x).permute(0, 2, 3, 1))
        y = nn.functional.gelu(self.widen(y))
        energy = y.square().sum(dim=(1, 2), keepdim=True).sqrt()
        response = energy / (energy.mean(dim=3, keepdim=True) + 1e-6)
        y = y + self.gain * (y * response) + self.shift
        return x + self.narrow(y).permute(0, 3, 1, 2)


class Model(nn.Module):
    """A small ConvNeXt V2: patches, blocks with a global response norm, and a classifier."""

    def __init__(self, dim: int, depth: int, classes: int):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, 4, stride=4)
        self.blocks = nn.Sequential(*(Block(dim) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """images: (batch, 3, size, size); the result: (batch, classes)."""
        return self.head(self.norm(self.blocks(self.patches(images)).mean(dim=(2, 3))))


CPU_SIZES = {"dim": 32, "batch": 3, "size": 64}

dim = 128
depth = 2
classes = 1000
batch = 32
size = 224


def get_inputs():
    return [torch.randn(batch, 3, size, size)]


def get_init_inputs():
    return [dim, depth, classes]
