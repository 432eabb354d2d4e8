"""Kernels as large as they fit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tuner.planning.fused import Fused, fuse
from agent.tuner.planning.partition import partition
from agent.tuner.tracing.graph import Graph, Kind, Node, library, pointwise, reduce, shared
from agent.tuner.tracing.trace import trace
from tests.agent.tuner.families import FAMILIES, module
from tests.agent.tuner.written import written


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("activations", ["map"]),
        ("comparisons", ["map"]),
        ("softmax", ["rows"]),
        ("layer_norm", ["rows"]),
        ("own_rms_norm", ["rows"]),
    ],
)
def test_one_kernel_is_enough(family: str, expected: list[str]) -> None:
    assert [k.family for k in partition(trace(FAMILIES[family])).kernels] == expected


def test_what_follows_a_product_is_fused_with_the_norm() -> None:
    body = "return torch.softmax((x @ y) * 2 + 1, 1)"
    program = partition(trace(module(body, x="torch.randn(8, 9)", y="torch.randn(9, 129)")))
    assert [k.family for k in program.kernels] == ["rows"]
    assert program.family == "rows"


def test_levels_and_rates() -> None:
    (kernel,) = partition(trace(FAMILIES["softmax"])).kernels[:1]
    assert kernel.passes == 2
    assert (kernel.rows, kernel.width) == (37, 129)
    assert all(n in kernel.full for n in kernel.body if n.shape == (37, 129))


def test_unlike_reductions_do_not_fit() -> None:
    x = Node(Kind.INPUT, (4, 5), name="x")
    rows, columns = reduce("sum", x, [1]), reduce("sum", x, [0])
    both = pointwise("add", rows, columns)
    assert fuse("k", [rows, columns, both], [both]) is None


@pytest.mark.parametrize(
    ("family", "left", "written_out"),
    [
        ("mask", [("max", (0,)), ("sum", (0,))], ".amax(dim=(0,), keepdim=True)"),
        ("frobenius", [("sum", (0, 1))], ".sum(dim=(0, 1), keepdim=True)"),
    ],
)
def test_a_reduction_that_is_not_along_rows_stays_with_pytorch(
    family: str, left: list[tuple[str, tuple[int, ...]]], written_out: str
) -> None:
    program = partition(trace(FAMILIES[family]))
    assert [(s.op, s.dims) for s in program.steps if isinstance(s, Node) and s.op] == left
    assert [k.family for k in program.kernels] == ["map", "map", "map"]
    assert written_out in written(FAMILIES[family])


NAMES = ["exp", "add", "mul", "sum0", "sum1", "max1", "lib"]
STEPS = st.tuples(st.sampled_from(NAMES), st.integers(0, 50), st.integers(0, 50))
OPS = st.lists(STEPS, min_size=1, max_size=14)


@settings(max_examples=150)
@given(OPS)
def test_every_program_can_be_carried_out(ops: list[tuple[str, int, int]]) -> None:
    """Steps come in an order in which operands exist, each node once, outputs all there."""
    values = [Node(Kind.INPUT, (6, 7), name="x"), Node(Kind.WEIGHT, (7,), name="w")]
    for op, i, j in ops:
        x, y = values[i % len(values)], values[j % len(values)]
        if op == "lib":
            values.append(library("f({0})", (x,), x.shape))
        elif op in ("exp",):
            values.append(pointwise(op, x))
        elif op in ("add", "mul"):
            values.append(pointwise(op, x, y))
        elif len(x.shape) == 2 and x.shape[int(op[-1])] > 1:
            values.append(reduce(op[:3], x, [int(op[-1])]))
    one = shared(values)
    graph = Graph(("x",), tuple(one[v] for v in values[-2:]))
    program = partition(graph)
    made = {n for n in graph.nodes() if n.is_leaf}
    for step in program.steps:
        if isinstance(step, Fused):
            assert all(o.node in made for o in step.operands)
            made |= set(step.outputs)
        else:
            assert all(a in made for a in step.args)
            made.add(step)
    assert all(o in made for o in graph.outputs)


def test_outputs_that_coincide_have_memory_of_their_own() -> None:
    reference = (
        "import torch\nimport torch.nn as nn\n\n"
        "class Model(nn.Module):\n    def forward(self, x):\n"
        "        return x.amax(dim=1), torch.max(x, dim=1)[0], x.amax(dim=1, keepdim=True)\n\n"
        "def get_inputs():\n    return [torch.randn(7, 33)]\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    returned = written(reference).rpartition("return ")[2]
    assert returned.count(".clone()") == 2
