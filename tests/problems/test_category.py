"""Categories derived from the operators that a module names."""

from __future__ import annotations

import ast

import pytest

from problems.category import derive_category
from problems.loader import load_suite

_HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
_OTHERWISE = {
    "level1_5_log_softmax": "reduction",
    "level1_7_rms_norm": "reduction",
    "level2_1_bias_swish_gate_residual": "elementwise",
    "level2_8_gated_rms_norm": "reduction",
    "level2_9_conv_pool_bias_tanh": "convolution",
    "level2_13_swiglu": "elementwise",
    "level2_15_focal_loss": "softmax",
    "level3_2_transformer_block": "network",
    "level3_5_gated_recurrence": "network",
}
"""Problems of ours whose author chose another category than their operators say."""


def model(*forward: str, init: str = "pass", args: str = "x") -> str:
    lines = "".join(f"        {line}\n" for line in forward)
    return (
        f"{_HEAD}class Model(nn.Module):\n    def __init__(self):\n        {init}\n"
        f"    def forward(self, {args}):\n{lines}"
    )


def derived(source: str) -> str:
    return derive_category(ast.parse(source))


def test_our_own_problems_have_the_categories_that_their_authors_gave() -> None:
    problems = load_suite()
    assert {p.id: derived(p.source) for p in problems} == {
        p.id: _OTHERWISE.get(p.id, p.category) for p in problems
    }


@pytest.mark.parametrize(
    ("category", "source"),
    [
        ("elementwise", model("return x * torch.sigmoid(x)")),
        ("elementwise", model("return x / (1 + torch.abs(x))")),
        ("elementwise", "from torch.nn.functional import relu\n" + model("return relu(x)")),
        ("reduction", model("return (x * mask).sum(1) / mask.sum(1)", args="x, mask")),
        ("loss", model("return self.f(x, y)", init="self.f = nn.KLDivLoss()", args="x, y")),
        ("scan", model("return torch.cumprod(x, dim=1)")),
        ("softmax", model("return F.log_softmax(x, dim=1)")),
        ("normalization", model("return F.layer_norm(x, (9,))")),
        ("attention", model("return F.scaled_dot_product_attention(q, k, v)", args="q, k, v")),
        ("index", model("return self.table(x)", init="self.table = nn.Embedding(9, 9)")),
        ("pooling", model("return self.pool(x)", init="self.pool = nn.AvgPool1d(2)")),
        ("matmul", model("return torch.diag(x) @ y", args="x, y")),
        ("matmul", model("return F.relu(self.fc(x))", init="self.fc = nn.Linear(9, 9)")),
        (
            "convolution",
            model(
                "return self.b(self.a(x))",
                init="self.a, self.b = nn.Conv2d(3, 3, 3, groups=3), nn.Conv2d(3, 9, 1)",
            ),
        ),
        (
            "network",
            model(
                "return self.layers(x)",
                init="self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(9, 9), nn.ReLU())"
                " for _ in range(9)])",
            ),
        ),
        (
            "network",
            model(
                "for i in range(len(self.up)):",
                "    x = F.relu(self.up[i](x))",
                "return x",
                init="self.up = nn.ModuleList([nn.Conv2d(3, 3, 3) for _ in range(3)])",
            ),
        ),
        ("recurrent", model("return self.rnn(x, h)", init="self.rnn = nn.GRU(9, 9)", args="x, h")),
        ("", model("return x")),
        ("", "x = 1"),
    ],
)
def test_by_operators(category: str, source: str) -> None:
    assert derived(source) == category


def test_what_the_model_does_not_reach_does_not_count() -> None:
    block = "class Block(nn.Module):\n    def f(self):\n        return nn.Conv2d(1, 1, 1)\n"
    inputs = (
        "def get_inputs():\n    return [torch.cumsum(torch.rand(3, 3) @ torch.rand(3, 3), 0)]\n"
    )
    relu = model("return torch.relu(x)")
    assert derived(relu + block + inputs) == "elementwise"
    assert derived(relu.replace("pass", "self.block = Block()") + block + inputs) == "convolution"
