import torch
from torch import nn


class Model(nn.Module):
    """Queries and keys before attention: RMS norm of each head, rotation, heads to the front."""

    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.query_scale = nn.Parameter(1.0 + 0.1 * torch.randn(dim))
        self.key_scale = nn.Parameter(1.0 + 0.1 * torch.randn(dim))
        self.eps = eps

    def turn(self, x, scale, cos, sin):
        x = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.eps) * scale
        left, right = x.chunk(2, dim=-1)
        turned = torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)
        return turned.transpose(1, 2).contiguous()

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """q, k: (batch, length, heads, dim); cos, sin: (batch, length, dim / 2)."""
        cos, sin = cos[:, :, None], sin[:, :, None]
        return self.turn(q, self.query_scale, cos, sin), self.turn(k, self.key_scale, cos, sin)


CPU_SIZES = {"batch": 2, "length": 96, "query_heads": 8, "key_heads": 2}

batch = 8
length = 2048
query_heads = 32
key_heads = 8
dim = 128


def get_inputs():
    q = torch.randn(batch, length, query_heads, dim)
    k = torch.randn(batch, length, key_heads, dim)
    angles = 3.0 * torch.randn(batch, length, dim // 2)
    return [q, k, torch.cos(angles), torch.sin(angles)]


def get_init_inputs():
    return [dim, 1e-6]
