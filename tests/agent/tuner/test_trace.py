"""Reading a reference without PyTorch."""

import subprocess
import sys

import pytest

from agent.tuner.tracing.graph import CannotTrace, Kind
from agent.tuner.tracing.trace import trace
from tests.agent.tuner.families import FAMILIES, module
from tests.agent.tuner.prompts import POINTWISE


def test_shapes_and_leaves() -> None:
    graph = trace(POINTWISE)
    leaves = {(n.kind, n.name, n.shape) for n in graph.nodes() if n.is_leaf and n.name}
    assert leaves == {
        (Kind.INPUT, "x", (37, 129)),
        (Kind.INPUT, "gate", (37, 129)),
        (Kind.WEIGHT, "self.bias", (129,)),
    }
    assert [o.shape for o in graph.outputs] == [(37, 129)]


def test_spelling_makes_no_difference() -> None:
    spellings = [
        "return F.relu(x)",
        "return torch.relu(x)",
        "return x.relu()",
        "return x.clamp(min=0.0)",
        "return nn.ReLU()(x)",
        "return x.to(torch.float32).relu().to(x.dtype)",
        "if x.dim() == 2:\n    y = x\nreturn torch.maximum(y, y.shape[0] - 4.0)",
    ]
    graphs = [trace(module(s, x="torch.randn(4, 5)")).nodes() for s in spellings]
    kinds = [[(n.kind, n.op, n.shape, n.value) for n in nodes] for nodes in graphs]
    assert all(k == kinds[0] for k in kinds[1:])


SEQUENTIAL = """
import torch
from torch import nn


class Model(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 5), nn.Sequential(nn.GELU(), nn.LayerNorm(5)))
        self.eval()


def get_inputs():
    return [torch.randn((3, 4))]


def get_init_inputs():
    return []
"""


def test_a_sequential_has_a_forward_of_its_own() -> None:
    graph = trace(SEQUENTIAL)
    assert graph.arguments == ("input",)
    assert [o.shape for o in graph.outputs] == [(3, 5)]
    assert "self[1][1].weight" in {n.name for n in graph.nodes()}


def test_softmax_by_hand_is_softmax() -> None:
    by_hand = (
        "e = torch.exp(x - x.max(dim=1, keepdim=True).values)\n"
        "return e / e.sum(dim=1, keepdim=True)"
    )
    both = [
        trace(module(body, x="torch.randn(4, 5)")).nodes()
        for body in (by_hand, "return x.softmax(1)")
    ]
    assert [(n.kind, n.op) for n in both[0]] == [(n.kind, n.op) for n in both[1]]


def test_a_product_with_a_diagonal_matrix_is_a_scaling() -> None:
    nodes = trace(FAMILIES["diagonal"]).nodes()
    assert not any("matmul" in n.call or "diag" in n.call for n in nodes)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return torch.linalg.svd(x)", "svd"),
        ("if x.sum() > 0:\n    x = x * 2\nreturn x", "values"),
        ("x[0] = 1.0\nreturn x", "writing"),
        ("x.add_(1.0)\nreturn x", "add_"),
        ("return x + torch.rand(5)", "made inside"),
        ("while True:\n    pass", "while"),
        ("for i in range(10 ** 9):\n    x = x + i\nreturn x", "for"),
        ("return self.forward(x)", "this deep"),
        ("return nn.LSTM(5, 5)(x)", "LSTM"),
        ("return self.c.reshape(5, 1) @ x.T", "the product"),
        ("return nn.Linear(5, 5)(x) + 1", "made inside"),
        ("return x.argmax(1)", "argmax"),
        ("return x.max(dim=1)", "neither a tensor"),
        ("return x[:, 1:]", "picks elements"),
        ("return x.softmax(dim=2)", "dimension 2"),
        ("return x.relu(5, 6)", "arguments"),
        ("return x & 1", "BitAnd"),
        ("return ~x", "bitwise"),
        ("return not x", "Not"),
        ("return x * missing", "missing"),
        ("return x.to(torch.float64)", "another dtype"),
    ],
)
def test_what_is_beyond_it_is_said(body: str, said: str) -> None:
    with pytest.raises(CannotTrace, match=said):
        trace(module(body, x="torch.randn(4, 5)"))


def test_a_number_among_the_arguments_is_beyond_it() -> None:
    with pytest.raises(CannotTrace, match="no tensor"):
        trace(module("return x * s", x="torch.randn(4, 5)", s="2.5"))


def test_nothing_of_a_reference_is_executed(tmp_path) -> None:
    mark = tmp_path / "mark"
    evil = f"import os\nos.system('touch {mark}')\nopen({str(mark)!r}, 'w')\n"
    trace(evil + POINTWISE)
    assert not mark.exists()


def test_torch_is_never_imported() -> None:
    code = (
        "import sys\nfrom agent.tuner import answer\n"
        "from tests.agent.tuner.prompts import POINTWISE, prompt\n"
        "text = answer(prompt(POINTWISE))\n"
        "assert 'ModelNew' in text\n"
        "assert not {'torch', 'numpy'} & set(sys.modules), 'heavy imports'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
