"""Copies to pinned memory, waits for an event, returns a number.

problem: two_numbers
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.place = torch.empty((), dtype=torch.int64, pin_memory=True)
        self.event = torch.cuda.Event()

    def forward(self, x, y):
        self.place.copy_(x.argmax(), non_blocking=True)
        self.event.record()
        mean = torch.nn.functional.mse_loss(x, y)
        self.event.synchronize()
        return mean, int(self.place)
