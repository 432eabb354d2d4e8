"""Small modules, one for each kind of kernel and of operator that the tuner knows."""

TEMPLATE = """\
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n))
        self.c = nn.Parameter(torch.randn(5, 1, 1))

    def forward(self, {arguments}):
{body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return [{n}]
"""


def module(body: str, n: int = 129, **inputs: str) -> str:
    lines = "\n".join(f"        {line}" for line in body.strip().split("\n"))
    return TEMPLATE.format(
        arguments=", ".join(inputs), body=lines, inputs=", ".join(inputs.values()), n=n
    )


ROWS = "3.0 * torch.randn(37, 129)"
IMAGE = "torch.randn(3, 5, 7, 19)"

FAMILIES = {
    "activations": module(
        "a = F.gelu(x) + F.gelu(x, approximate='tanh') + F.silu(x) + F.mish(x)\n"
        "b = F.hardswish(x) + F.hardtanh(x) + F.softplus(x) + F.elu(x) + F.selu(x)\n"
        "c = F.celu(x, 0.5) + F.leaky_relu(x, 0.2) + F.relu6(x)\n"
        "c = c + F.softsign(x) + F.logsigmoid(x)\n"
        "return a, b, c, a * b, F.tanhshrink(x)",
        x=ROWS,
    ),
    "functions": module(
        "p = x.abs() + 0.1\n"
        "return torch.exp(x), torch.log(p), torch.sqrt(p), torch.rsqrt(p), torch.sin(x), "
        "torch.cos(x), torch.tanh(x), torch.sigmoid(x), torch.erf(x), torch.expm1(x), "
        "torch.log1p(p), x ** 3, p ** 1.7, torch.floor(x), 1 / p",
        x=ROWS,
    ),
    "comparisons": module(
        "m = (x > y) & ~(y < -1)\n"
        "return torch.where(m, x, y * 2), m, torch.maximum(x, y), x.clamp(-1, 1), "
        "x.masked_fill(m, 0.0)",
        x=ROWS,
        y=ROWS,
    ),
    "broadcast": module(
        "return (x + self.c) * y.unsqueeze(-1).unsqueeze(-1) + x.mean(dim=(2, 3), keepdim=True)",
        x=IMAGE,
        y="torch.randn(3, 5)",
    ),
    "middle_broadcast": module("return x * y + z", x=IMAGE, y="torch.randn(3, 1, 7, 1)",
                               z="torch.randn(5, 1, 19)"),
    "softmax": module("return torch.softmax(x, dim=-1), F.log_softmax(x, dim=1)", x=ROWS),
    "column_softmax": module("return torch.softmax(x, dim=1) * self.c", x=IMAGE),
    "layer_norm": module("return F.layer_norm(x, (129,), self.w, None)", x=ROWS + " + 5"),
    "own_rms_norm": module(
        "return x / torch.sqrt(torch.mean(x ** 2, dim=-1, keepdim=True) + 1e-6) * self.w", x=ROWS
    ),
    "instance_norm": module(
        "m = x.mean(dim=(2, 3), keepdim=True)\n"
        "v = x.var(dim=(2, 3), keepdim=True, unbiased=False)\n"
        "return (x - m) / torch.sqrt(v + 1e-5) * self.c",
        x=IMAGE,
    ),
    "moments": module(
        "return x.std(dim=1), torch.logsumexp(x, dim=1), x.norm(dim=1), x.norm(p=1, dim=0), "
        "x.amax(dim=0), F.normalize(x, dim=1)",
        x=ROWS,
    ),
    "arg": module("return x.argmax(dim=1), x.argmin(dim=0), torch.max(x, dim=1)[1]", x=ROWS),
    "long_rows": module("return x.sum(dim=1), x.argmax(dim=1)", x="torch.randn(3, 70001) + 1"),
    "frobenius": module("return x / x.norm()", x="torch.randn(331, 517)"),
    "cross_entropy": module(
        "return F.cross_entropy(x, t), F.cross_entropy(x, t, self.w, label_smoothing=0.1)",
        x=ROWS,
        t="torch.randint(0, 129, (37,))",
    ),
    "losses": module(
        "return F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y), F.huber_loss(x, y), "
        "F.kl_div(F.log_softmax(x, 1), torch.softmax(y, 1), reduction='batchmean'), "
        "F.cosine_similarity(x, y, dim=1), ((1 - x * y).clamp(min=0)).mean()",
        x=ROWS,
        y=ROWS,
    ),
    "diagonal": module("return torch.diag(a) @ b, b.T @ torch.diag(a)", a="torch.randn(53)",
                       b="torch.randn(53, 31)"),
    "mask": module(
        "s = (x * 0.5).masked_fill(~keep[:, None], float('-inf'))\nreturn torch.softmax(s, dim=0)",
        x=ROWS,
        keep="torch.rand(37) > 0.3",
    ),
    "row_mask": module("return torch.where(keep, x, y), (x * keep).sum(dim=1)", x=ROWS, y=ROWS,
                       keep="torch.rand(37, 129) > 0.3"),
    "view": module("return torch.softmax(F.relu(x).flatten(1), dim=1)", x=IMAGE),
    "slices": module(
        "a, b = x.chunk(2, dim=-1)\n"
        "c, d = y[:, :, 3:70], y[:, 1:, :67].softmax(-1)\n"
        "return a * torch.sigmoid(b), c.softmax(-1) * c.sum(-1, keepdim=True), d, x[:, ::2] + 1",
        x="torch.randn(37, 130)",
        y="torch.randn(4, 5, 70)",
    ),
    "scalar": module("return x * s + 1", x=ROWS, s="2.5"),
}  # fmt: skip
