import torch
from torch import nn


class Model(nn.Module):
    """Sequences of unequal length, each pooled to one vector with softmax weights."""

    def forward(
        self, states: torch.Tensor, scores: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        """states: (batch, steps, dim); scores: (batch, steps); the result: (batch, dim).

        lengths: (batch,), int64, at least 1; what lies beyond is padding.
        """
        places = torch.arange(states.shape[1], device=states.device)
        padding = places >= lengths[:, None]
        weights = torch.softmax(scores.masked_fill(padding, float("-inf")), dim=1)
        return torch.sum(states * weights[:, :, None], dim=1)


CPU_SIZES = {"batch": 8, "steps": 256, "dim": 192}

batch = 96
steps = 1536
dim = 1024


def get_inputs():
    lengths = torch.randint(steps // 2, steps + 1, (batch,))
    return [torch.randn(batch, steps, dim), torch.randn(batch, steps), lengths]


def get_init_inputs():
    return []
