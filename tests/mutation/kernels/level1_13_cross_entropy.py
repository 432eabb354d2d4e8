"""Cross entropy by elementary operators."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, classes, smoothing):
        super().__init__()
        self.classes = classes
        self.smoothing = smoothing
        self.register_buffer("class_weights", torch.linspace(0.5, 1.5, classes))

    def forward(self, logits, labels):
        top = logits.max(dim=1, keepdim=True).values
        shifted = logits - top
        total = torch.log(torch.exp(shifted).sum(dim=1, keepdim=True))
        weighted = (total - shifted) * self.class_weights
        own = weighted.gather(1, labels[:, None]).squeeze(1)
        share = self.smoothing / self.classes
        return (1.0 - self.smoothing) * own + share * weighted.sum(dim=1)
