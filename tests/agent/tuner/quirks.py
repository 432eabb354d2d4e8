"""Whole files in KernelBench's style, with its quirks."""

HEAD = """\
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
"""

QUIRKS = {
    "newgelu": HEAD
    + """
class Model(nn.Module):
    '''What it does.'''

    def __init__(self):
        super(Model, self).__init__()
        self.eps = 0.5

    def forward(self, x):
        '''What it does.'''
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner)) + self.eps
batch_size = 200
dim = 300

def get_inputs():
    return [torch.randn(batch_size, dim)]

def get_init_inputs():
    return []
""",
    "convt3d": HEAD
    + """
class Model(nn.Module):

    def __init__(self, i, o, k, stride, padding, output_padding, sc, norm_shape):
        super().__init__()
        self.conv = nn.ConvTranspose3d(
            i, o, k, stride=stride, padding=padding, output_padding=output_padding
        )
        self.s = nn.Parameter(torch.tensor(sc))
        self.norm = nn.LayerNorm(norm_shape)
        self.tail = nn.Sequential(nn.AvgPool3d(kernel_size=(2, 2, 2)), nn.GELU())

    def forward(self, x):
        x = self.conv(x)
        x = x + self.s
        x = self.tail(self.norm(x))
        return torch.logsumexp(x.mean(dim=[2, 3, 4], keepdim=True), dim=1, keepdim=True).squeeze()

def get_inputs():
    return [torch.rand(2, 3, 6, 7, 8)]

def get_init_inputs():
    return [3, 5, (3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), 0.5, (16,)]
""",
}
