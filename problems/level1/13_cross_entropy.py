import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Cross entropy of each sample, with class weights and label smoothing."""

    def __init__(self, classes: int, smoothing: float):
        super().__init__()
        self.smoothing = smoothing
        self.register_buffer("class_weights", torch.linspace(0.5, 1.5, classes))

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """logits: (batch, classes); labels: (batch,), int64; the result: (batch,)."""
        return F.cross_entropy(
            logits,
            labels,
            weight=self.class_weights,
            reduction="none",
            label_smoothing=self.smoothing,
        )


CATEGORY = "loss"
CPU_SIZES = {"batch": 4000, "classes": 1000}

batch = 16384
classes = 32000
smoothing = 0.1


def get_inputs():
    spread = torch.exp(torch.randn(batch, 1))
    labels = torch.randint(0, classes, (batch,))
    return [torch.randn(batch, classes) * spread, labels]


def get_init_inputs():
    return [classes, smoothing]
