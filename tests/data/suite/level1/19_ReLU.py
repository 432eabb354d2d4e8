import torch
import torch.nn as nn

class Model(nn.Module):
    """
    Simple model that keeps what is positive.
    """
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)

batch_size = 64
dim = 513

def get_inputs():
    # Made wherever the default device is.
    x = torch.empty(batch_size, dim)
    x.normal_()
    return [x]

def get_init_inputs():
    return []
