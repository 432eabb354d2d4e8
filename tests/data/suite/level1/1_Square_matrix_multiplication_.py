import torch
import torch.nn as nn

class Model(nn.Module):
    """
    Multiplies two square matrices. The module has no parameters.
    """
    def __init__(self):
        super(Model, self).__init__()
    
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """
        Args:
            A (torch.Tensor): Shape (N, N).
            B (torch.Tensor): Shape (N, N).
        """
        return torch.matmul(A, B)

N = 64 * 2

def get_inputs():
    A = torch.rand(N, N) - 0.5
    B = torch.rand(N, N) - 0.5
    return [A, B]

def get_init_inputs():
    return []  # No special initialization inputs needed
