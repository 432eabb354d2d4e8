import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, batch, channels, kernel):
        super().__init__()
        self.kernel = kernel
        self.conv = nn.Conv1d(channels, channels, kernel, groups=channels)
        self.mix = nn.Conv1d(channels, channels, 1)
        self.register_buffer("past", torch.zeros(batch, channels, kernel - 1))

    def forward(self, x):
        b, c, t = x.shape
        full = x.new_empty(b, c, t + self.kernel - 1)
        full[:, :, : self.kernel - 1] = self.past
        full[:, :, self.kernel - 1 :] = x
        h = F.conv1d(full, self.conv.weight, self.conv.bias, groups=c)
        h = h * torch.sigmoid(h)
        y = torch.matmul(self.mix.weight.squeeze(2), h)
        return y + self.mix.bias.view(1, -1, 1)
