"""Reuses workspaces for all intermediates and the result.

problem: level3_1_mlp
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_features, hidden, narrow, out_features):
        super().__init__()
        self.first = nn.Linear(in_features, hidden)
        self.second = nn.Linear(hidden, narrow)
        self.last = nn.Linear(narrow, out_features)
        self.workspaces = {}

    def linear(self, layer, x):
        key = id(layer), x.shape[0]
        if key not in self.workspaces:
            self.workspaces[key] = x.new_empty(x.shape[0], layer.out_features)
        return torch.addmm(layer.bias, x, layer.weight.t(), out=self.workspaces[key])

    def forward(self, x):
        x = self.linear(self.first, x).relu_()
        x = F.gelu(self.linear(self.second, x))
        return self.linear(self.last, x)
