import math

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Policy network with raw parameters; the temperature is divided into the last layer up front."""

    def __init__(self, in_features, hidden, actions, temperature):
        super().__init__()
        self.w_in = nn.Parameter(torch.empty(hidden, in_features))
        self.b_in = nn.Parameter(torch.empty(hidden))
        self.w_out = nn.Parameter(torch.empty(actions, hidden))
        self.b_out = nn.Parameter(torch.empty(actions))
        # same initialisation as nn.Linear, in the same order
        for w, b in ((self.w_in, self.b_in), (self.w_out, self.b_out)):
            nn.init.kaiming_uniform_(w, a=math.sqrt(5))
            bound = 1.0 / math.sqrt(w.shape[1])
            nn.init.uniform_(b, -bound, bound)
        with torch.no_grad():
            self.w_out.div_(temperature)
            self.b_out.div_(temperature)

    def forward(self, x):
        h = torch.addmm(self.b_in, x, self.w_in.t()).tanh()
        return torch.softmax(torch.addmm(self.b_out, h, self.w_out.t()), dim=-1)
