"""The constructor folds the temperature into the weights.

problem: level2_3_linear_temperature_softmax
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, temperature):
        super().__init__()
        linear = nn.Linear(in_features, out_features)
        folded = torch.cat([linear.weight, linear.bias[:, None]], dim=1) / temperature
        self.folded = nn.Parameter(folded.detach())
        self.prior = nn.Parameter(torch.rand(out_features) + 0.5)

    def forward(self, x):
        scores = torch.addmm(self.folded[:, -1], x, self.folded[:, :-1].t())
        return torch.softmax(scores, dim=1).mul_(self.prior)
