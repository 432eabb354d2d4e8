import torch
import torch.nn as nn

class Model(nn.Module):
    """
    Convolution, batch norm in train mode (its running statistics move), bias, scale.
    """
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape, scale_factor):
        super(Model, self).__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, bias=False)
        self.bn = nn.BatchNorm2d(out_channels)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale_factor = scale_factor

    def forward(self, x):
        x = self.conv(x)
        x = self.bn(x)
        x = x + self.bias
        return x * self.scale_factor

batch_size = 8
in_channels  = 3
out_channels = 16
height, width = 20, 22
kernel_size = 3
bias_shape = (out_channels, 1, 1)
scale_factor = 2.0

def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width)]

def get_init_inputs():
    return [in_channels, out_channels, kernel_size, bias_shape, scale_factor]
