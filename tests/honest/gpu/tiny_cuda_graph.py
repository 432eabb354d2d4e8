"""Every call is a copy in, a replay and a copy out.

problem: tiny
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.input = x.clone()
            torch.tanh(self.linear(self.input))
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.output = torch.tanh(self.linear(self.input))
        self.input.copy_(x)
        self.graph.replay()
        return self.output.clone()
