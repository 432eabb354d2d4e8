import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim, hidden, bins):
        super().__init__()
        self.bins = bins
        self.embed = nn.Linear(dim, hidden)
        self.head = nn.Linear(hidden, dim)

    def forward(self, features, position):
        h = self.embed(features).relu_()
        index = (position * self.bins).long().clamp_(0, self.bins - 1)
        # scatter instead of the dense one-hot product
        grid = torch.empty(self.bins, h.shape[1], dtype=h.dtype, device=h.device)
        grid.index_add_(0, index, h)
        return self.head(grid)
