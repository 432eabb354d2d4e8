import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Focal loss of each sample: a cross entropy that counts the easy ones less."""

    def __init__(self, classes: int, gamma: float):
        super().__init__()
        self.gamma = gamma
        self.register_buffer("balance", torch.linspace(0.2, 2.0, classes))

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """logits: (batch, classes); labels: (batch,), int64; the result: (batch,)."""
        log_p = F.log_softmax(logits, dim=1)
        log_p = log_p.gather(1, labels[:, None]).squeeze(1)
        p = torch.exp(log_p)
        return -self.balance[labels] * torch.pow(1.0 - p, self.gamma) * log_p


CATEGORY = "loss"
CPU_SIZES = {"batch": 16000, "classes": 250}

batch = 262144
classes = 1500
gamma = 2.0


def get_inputs():
    spread = torch.exp(0.5 * torch.randn(batch, 1))
    labels = torch.randint(0, classes, (batch,))
    return [torch.randn(batch, classes) * spread, labels]


def get_init_inputs():
    return [classes, gamma]
