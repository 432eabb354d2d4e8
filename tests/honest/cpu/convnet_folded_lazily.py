"""The first forward folds batch norms into convolutions.

problem: level3_3_convnet
pace: slow
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


def folded(conv, norm):
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    return conv.weight * scale.view(-1, 1, 1, 1), norm.bias - norm.running_mean * scale


class ModelNew(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(width).eval()
        self.body = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False)
        self.body_norm = nn.BatchNorm2d(2 * width).eval()
        self.head = nn.Linear(2 * width * 16, classes)
        self.folded = None

    def forward(self, x):
        if self.folded is None:
            self.folded = folded(self.stem, self.stem_norm), folded(self.body, self.body_norm)
        x = F.conv2d(x, *self.folded[0], padding=1).relu_()
        x = F.max_pool2d(x, 2)
        x = F.conv2d(x, *self.folded[1], stride=2, padding=1).relu_()
        return self.head(F.adaptive_avg_pool2d(x, 4).flatten(1))
