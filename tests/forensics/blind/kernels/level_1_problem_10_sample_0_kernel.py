import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """GRU encoder with static buffers, set up once in the manner of a captured graph.

    The input projection of all time steps is one GEMM; only the recurrence is sequential.
    """

    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.gru = nn.GRU(input_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)
        self.hidden_size = hidden_size
        self._static_in = None

    def _capture(self, x):
        self._static_in = x

    def _replay(self):
        x = self._static_in
        b, t, _ = x.shape
        g = self.gru
        gi = torch.addmm(g.bias_ih_l0, x.reshape(b * t, -1), g.weight_ih_l0.t()).view(b, t, -1)
        h = x.new_zeros(b, self.hidden_size)
        w_hh = g.weight_hh_l0.t()
        for i in range(t):
            i_r, i_z, i_n = gi[:, i].chunk(3, dim=1)
            h_r, h_z, h_n = torch.addmm(g.bias_hh_l0, h, w_hh).chunk(3, dim=1)
            r = torch.sigmoid(i_r + h_r)
            z = torch.sigmoid(i_z + h_z)
            n = torch.tanh(i_n + r * h_n)
            h = torch.lerp(n, h, z)
        return torch.addmm(self.out.bias, h, self.out.weight.t())

    def forward(self, x):
        if self._static_in is None or self._static_in.shape != x.shape:
            self._capture(x)
        return self._replay()
