import torch
import torch.nn as nn

CATEGORY = 3  # its own use of a name that is also ours

class Model(nn.Module):
    def __init__(self, repeats):
        super().__init__()
        self.rnn = nn.GRU(24, 32, batch_first=True)
        self.repeats = repeats

    def forward(self, x, state):
        for _ in range(self.repeats):
            y, state = self.rnn(x, state)
        return y, state

def get_inputs():
    return [torch.randn(4, 12, 24), torch.zeros(1, 4, 32)]

def get_init_inputs():
    return [CATEGORY]