import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """1D upsampler with functional transposed convolutions and in-place activations."""

    def __init__(self, channels, kernel_size, stride):
        super().__init__()
        self.up1 = nn.ConvTranspose1d(
            channels, channels // 2, kernel_size, stride=stride, padding=stride // 2
        )
        self.up2 = nn.ConvTranspose1d(
            channels // 2, channels // 4, kernel_size, stride=stride, padding=stride // 2
        )
        self.stride = stride
        self.pad = stride // 2

    def forward(self, x):
        y = F.conv_transpose1d(x, self.up1.weight, self.up1.bias, self.stride, self.pad)
        y = F.leaky_relu(y, 0.1)
        y = F.conv_transpose1d(y, self.up2.weight, None, self.stride, self.pad)
        return torch.tanh(y)
