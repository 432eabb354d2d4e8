"""Whole files in KernelBench's style, with its quirks."""

HEAD = """\
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
"""

QUIRKS = {
    "gemm_gn_min": HEAD
    + """
class Model(nn.Module):

    def __init__(self, a, b, groups, bias_shape):
        super(Model, self).__init__()
        self.gemm = nn.Linear(a, b)
        self.group_norm = nn.GroupNorm(groups, b)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.gemm(x)
        x = self.group_norm(x)
        x = torch.min(x, dim=1, keepdim=True)[0]
        x = x + self.bias
        return x

def get_inputs():
    return [torch.rand(64, 96)]

def get_init_inputs():
    return [96, 128, 8, (1, 128, 1, 1)]
""",
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
    "hinge": HEAD
    + """
class Model(nn.Module):

    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))

def get_inputs():
    return [torch.rand(100, 77), torch.rand(77) * 2 - 1]

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
