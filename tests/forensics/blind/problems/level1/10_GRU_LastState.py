import torch
import torch.nn as nn


class Model(nn.Module):
    """Sequence encoder: one GRU layer, last state, linear read-out."""

    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.gru = nn.GRU(input_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, x):
        _, h = self.gru(x)
        return self.out(h[-1])


def get_inputs():
    return [torch.randn(8, 20, 16)]


def get_init_inputs():
    return [16, 32, 8]
