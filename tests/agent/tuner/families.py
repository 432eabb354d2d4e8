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
        "c = F.leaky_relu(x, 0.2) + F.relu6(x) + torch.relu(x)\n"
        "return a, b, c, a * b",
        x=ROWS,
    ),
    "functions": module(
        "p = x.abs() + 0.1\n"
        "return torch.exp(x), torch.log(p), torch.sqrt(p), torch.rsqrt(p), torch.tanh(x), "
        "torch.sigmoid(x), torch.erf(x), torch.expm1(x), torch.log1p(p), x ** 3, p ** 1.7, 1 / p",
        x=ROWS,
    ),
    "comparisons": module(
        "m = ~(x > y)\n"
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
    "layer_norm": module("return F.layer_norm(x, (129,), self.w, None)", x=ROWS + " + 5"),
    "own_rms_norm": module(
        "return x / torch.sqrt(torch.mean(x ** 2, dim=-1, keepdim=True) + 1e-6) * self.w", x=ROWS
    ),
    "moments": module(
        "return x.var(dim=1), torch.logsumexp(x, dim=1), x.norm(dim=1), x.amax(dim=1), "
        "torch.min(x, dim=1)[0], F.adaptive_avg_pool1d(x, 1)",
        x=ROWS,
    ),
    "long_rows": module("return x.sum(dim=1), x.amax(dim=1)", x="torch.randn(3, 70001) + 1"),
    "frobenius": module("return x / x.norm()", x="torch.randn(331, 517)"),
    "losses": module(
        "return F.huber_loss(x, y), F.cosine_similarity(x, y, dim=1), "
        "((1 - x * y).clamp(min=0)).mean()",
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
    "view": module(
        "return torch.softmax(F.relu(x).flatten(1), dim=1).unsqueeze(1).squeeze(1)", x=IMAGE
    ),
    "chunks": module("a, b = x.chunk(2, dim=-1)\nreturn a * torch.sigmoid(b), b.softmax(-1)",
                     x="torch.randn(37, 130)"),
}  # fmt: skip
