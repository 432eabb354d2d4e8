"""Writes states into slices and returns a view of the last.

problem: level3_5_gated_recurrence
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim, state):
        super().__init__()
        self.enter = nn.Linear(dim, 2 * state)
        self.leave = nn.Linear(state, dim)

    def forward(self, x, state):
        value, decay = self.enter(x).chunk(2, dim=-1)
        decay = torch.sigmoid(decay)
        states = torch.tanh(value).mul_(1.0 - decay)
        for step in range(x.shape[1]):
            states[:, step].addcmul_(decay[:, step], state)
            state = states[:, step]
        return self.leave(states), state
