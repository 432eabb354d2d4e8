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
    "convt3d": HEAD
    + """
class Model(nn.Module):

    def __init__(self, i, o, k, stride, padding, output_padding, sc):
        super().__init__()
        self.conv = nn.ConvTranspose3d(
            i, o, k, stride=stride, padding=padding, output_padding=output_padding
        )
        self.s = nn.Parameter(torch.tensor(sc))

    def forward(self, x):
        x = self.conv(x)
        x = torch.softmax(x, dim=1)
        x = torch.sigmoid(x) * self.s
        x = x.mean(dim=[2, 3, 4], keepdim=True)
        return torch.logsumexp(x, dim=1, keepdim=True).squeeze()

def get_inputs():
    return [torch.rand(2, 3, 6, 7, 8)]

def get_init_inputs():
    return [3, 5, 3, 2, 1, 1, 0.5]
""",
    "newgelu": HEAD
    + """
class Model(nn.Module):
    '''What it does.'''
    eps = 0.5

    def __init__(self):
        super(Model, self).__init__()

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
    "rms4d": HEAD
    + """
class Model(nn.Module):

    def __init__(self, num_features: int, eps: float=1e-05):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rms = torch.sqrt(torch.mean(x ** 2, dim=1, keepdim=True) + self.eps)
        return x / rms

def get_inputs():
    return [torch.rand(5, 16, 31, 33)]

def get_init_inputs():
    return [16]
""",
    "hinge": HEAD
    + """
class Model(nn.Module):

    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))

def get_inputs():
    return [torch.rand(100, 77), torch.randint(0, 2, (77,)).float() * 2 - 1]

def get_init_inputs():
    return []
""",
    "kl": HEAD
    + """
class Model(nn.Module):

    def forward(self, predictions, targets):
        return F.kl_div(torch.log(predictions), targets, reduction='batchmean')

def get_inputs():
    scale = torch.rand(())
    return [(torch.rand(64, 200) * scale).softmax(dim=-1), torch.rand(64, 200).softmax(dim=-1)]

def get_init_inputs():
    return []
""",
    "bnrelu_res": HEAD
    + """
class Block(nn.Module):
    expansion = 1

    def __init__(self, i, o):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.relu = nn.ReLU(inplace=True)
        self.down = None
        if i != o * self.expansion:
            self.down = nn.Sequential(nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        if self.down is not None:
            identity = self.down(x)
        out += identity
        return self.relu(out)

class Model(nn.Module):

    def __init__(self, n):
        super().__init__()
        layers = []
        c = 4
        for i in range(n):
            layers.append(Block(c, c * 2))
            c *= 2
        self.layers = nn.Sequential(*layers)
        self.heads = nn.ModuleList([nn.Linear(c, 3) for _ in range(2)])
        self.pool = nn.AdaptiveAvgPool2d((1, 1))

    def forward(self, x):
        x = self.pool(self.layers(x))
        x = torch.flatten(x, 1)
        for h in self.heads:
            x = F.relu(h(x)) if False else torch.cat([h(x), x[:, 3:]], dim=1)
        return x

def get_inputs():
    return [torch.randn(2, 4, 9, 10)]

def get_init_inputs():
    return [2]
""",
    "argmin_dim0": HEAD
    + """
class Model(nn.Module):

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        product = torch.prod(1 + 0.01 * x, dim=self.dim)
        return torch.argmin(x, dim=self.dim), x.max(dim=self.dim).values, product

def get_inputs():
    return [torch.randn(17, 40, 21)]

def get_init_inputs():
    return [1]
""",
    "inplace_alias": HEAD
    + """
class Model(nn.Module):

    def forward(self, x, y):
        a = x * 2
        a += y
        a *= a.mean()
        return (a, (x.unsqueeze(1) - y.unsqueeze(0)).pow(2).sum(-1).sqrt())

def get_inputs():
    return [torch.randn(30, 40), torch.randn(30, 40)]

def get_init_inputs():
    return []
""",
    "gates": HEAD
    + """
class Model(nn.Module):

    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        i, j, k = torch.split(x, [5, 7, 52], dim=1)
        last = F.silu(x[:, 1:, None] * 2)[..., 0] if x.dim() == 3 else j + 1
        return torch.sigmoid(a) * torch.tanh(b), i.sum(1), last

def get_inputs():
    return [torch.randn(30, 64)]

def get_init_inputs():
    return []
""",
}
