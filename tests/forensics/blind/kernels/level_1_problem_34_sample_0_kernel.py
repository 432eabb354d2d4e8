import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 1)

    def forward(self, x):
        b, c, height, width = x.shape
        p = F.avg_pool2d(x, 3, stride=1, padding=1)
        w = self.conv.weight.view(self.conv.out_channels, c)
        y = torch.matmul(w, p.view(b, c, height * width)) + self.conv.bias.view(1, -1, 1)
        return y.relu_().view(b, -1, height, width)
