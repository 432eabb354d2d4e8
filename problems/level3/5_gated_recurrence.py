import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear recurrence with input-dependent decay, between two projections."""

    def __init__(self, dim: int, state: int):
        super().__init__()
        self.enter = nn.Linear(dim, 2 * state)
        self.leave = nn.Linear(state, dim)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x: (batch, length, dim); state: (batch, state); the results: like x, last state."""
        value, decay = self.enter(x).chunk(2, dim=-1)
        decay = torch.sigmoid(decay)
        value = (1.0 - decay) * torch.tanh(value)
        states = []
        for step in range(x.shape[1]):
            state = decay[:, step] * state + value[:, step]
            states.append(state)
        return self.leave(torch.stack(states, dim=1)), state


CATEGORY = "scan"
CPU_SIZES = {"dim": 128, "state": 256, "batch": 16, "length": 64}

dim = 512
state = 1024
batch = 256
length = 256


def get_inputs():
    return [2.0 * torch.randn(batch, length, dim), torch.randn(batch, state)]


def get_init_inputs():
    return [dim, state]
