"""Returns a narrow view into a longer workspace.

problem: level1_18_depthwise_conv1d
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, taps, groups=channels, padding=taps - 1)
        self.taps = taps

    def forward(self, x):
        length, before = x.shape[2], self.taps - 1
        work = x.new_empty(x.shape[0], x.shape[1], before + length + 5)
        result = work.narrow(2, before, length)
        weight = self.conv.weight[:, 0, :]
        torch.mul(x, weight[:, -1:], out=result)
        for tap in range(before):
            shift = before - tap
            result[:, :, shift:].addcmul_(x[:, :, : length - shift], weight[:, tap : tap + 1])
        return result.add_(self.conv.bias[:, None])
