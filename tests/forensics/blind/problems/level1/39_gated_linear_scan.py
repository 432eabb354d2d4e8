import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Gated linear recurrence (minimal GRU): h_t = (1 - z_t) h_{t-1} + z_t c_t."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.to_z = nn.Linear(dim, hidden)
        self.to_c = nn.Linear(dim, hidden)

    def forward(self, x):
        z = torch.sigmoid(self.to_z(x))
        c = self.to_c(x)
        h = torch.zeros_like(c[:, 0])
        out = []
        for t in range(x.shape[1]):
            h = (1 - z[:, t]) * h + z[:, t] * c[:, t]
            out.append(h)
        return torch.stack(out, dim=1)


batch, steps, dim, hidden = 8, 40, 32, 48


def get_inputs():
    return [torch.randn(batch, steps, dim)]


def get_init_inputs():
    return [dim, hidden]
