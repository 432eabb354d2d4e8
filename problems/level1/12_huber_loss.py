import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Huber loss of each sample: the mean over its features, not over the batch."""

    def __init__(self, delta: float):
        super().__init__()
        self.delta = delta

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """prediction, target: (batch, features); the result: (batch,)."""
        loss = F.huber_loss(prediction, target, reduction="none", delta=self.delta)
        return torch.mean(loss, dim=1)


CATEGORY = "loss"
CPU_SIZES = {"batch": 8000, "features": 250}

batch = 1048576
features = 250
delta = 4.0


def get_inputs():
    spread = torch.exp(torch.randn(batch, 1))
    target = torch.randn(batch, features) * spread
    return [torch.randn(batch, features), target]


def get_init_inputs():
    return [delta]
