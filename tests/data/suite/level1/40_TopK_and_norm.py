import torch
import torch.nn as nn

class Model(nn.Module):
    """
    Several outputs in nested containers, scalars and None among the arguments.
    """
    def __init__(self, normalized_shape: tuple, k: int, bias, eps: float = 1e-5, largest: bool = True):
        super(Model, self).__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape, eps=eps)
        self.bias = bias
        self.k = k
        self.largest = largest

    def forward(self, x: torch.Tensor, scale: float, mask=None):
        y = self.ln(x) * scale
        if self.bias is not None:
            y = y + self.bias
        if mask is not None:
            y = y * mask
        values, indices = torch.topk(x, self.k, dim=-1, largest=self.largest)
        return {"normed": y, "top": [values, indices]}

batch_size = 32
features = 100
k = 3

def get_inputs():
    x = torch.randn(batch_size, features) * (1 + torch.arange(batch_size)[:, None])
    return [x, 2.5, None]

def get_init_inputs():
    return [(features,), k, None, 1e-6, True]
