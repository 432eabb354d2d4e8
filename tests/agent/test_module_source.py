"""Modules of any class become problem files that do the same."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
import torch
from torch import nn
from transformers import BertConfig, LlamaConfig
from transformers.models.bert.modeling_bert import BertEmbeddings, BertOutput
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaMLP, LlamaRMSNorm

from agent.written_problem import from_module
from problems.errors import UsageError
from problems.loader import load_problem
from tests.agent import module_at_hand
from tests.agent.module_at_hand import Doubled, Gated, Stacked

LLAMA = LlamaConfig(
    hidden_size=32,
    intermediate_size=64,
    num_attention_heads=4,
    num_key_value_heads=2,
    attn_implementation="sdpa",
)
BERT = BertConfig(hidden_size=32, intermediate_size=64, num_attention_heads=2, vocab_size=50)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def problem_source(module: object, inputs: Any) -> str:
    return from_module(module, inputs).path.read_text()


def executed(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(source, "problem.py", "exec"), namespace)
    return namespace


class Inner(nn.Module):
    def __init__(self, scale: torch.Tensor) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


def test_the_file_has_what_forward_uses_and_no_more(tmp_path: Path) -> None:
    module = Gated(8).eval()
    source = problem_source(module, [torch.randn(4, 8)])
    path = tmp_path / "gated.py"
    path.write_text(source)
    assert load_problem(str(path)).id == "gated"
    made = executed(source)
    assert not made["Model"]().training
    assert {*made} >= {"SCALE", "gate"} and not {*made} & {"UNUSED", "Doubled", "nbclient"}
    assert [tuple(each.shape) for each in made["get_inputs"]()] == [(4, 8)]


@pytest.mark.parametrize(
    ("module", "inputs"),
    [
        (nn.Sequential(nn.Linear(4, 8, bias=False), nn.GELU(approximate="tanh")), [(2, 4)]),
        (nn.GELU(), [(3, 4)]),
        (nn.Conv2d(3, 8, 3, padding=1, stride=2), [(2, 3, 8, 8)]),
        (nn.LSTM(4, 8, 2, batch_first=True, bidirectional=True), [(2, 5, 4)]),
        (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval(), [(2, 5, 16)]),
        (Stacked(types.SimpleNamespace(width=3, other=UserWarning())), [(3, 8)]),
        (LlamaRMSNorm(32), [(2, 32)]),
        (LlamaMLP(LLAMA), [(2, 5, 32)]),
        (
            LlamaAttention(LLAMA, 0).eval(),
            {
                "hidden_states": torch.randn(1, 5, 32),
                "position_embeddings": (torch.randn(1, 5, 8), torch.randn(1, 5, 8)),
                "attention_mask": None,
            },
        ),
        (BertOutput(BERT).eval(), [(2, 5, 64), (2, 5, 32)]),
        (BertEmbeddings(BERT).eval(), [torch.randint(0, 50, (2, 7))]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_any_class_is_written_down(module: nn.Module, inputs: Any) -> None:
    source = problem_source(module, inputs)  # compares what both give
    assert "class Model(" in source
    assert {*executed(source)["Model"]().state_dict()} == {*module.state_dict()}


def test_inputs_keep_shape_dtype_and_range() -> None:
    examples = [torch.tensor([[3, 9]], dtype=torch.int32), ((4,), "int64"), 2.5]

    class Taking(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor, c: float) -> torch.Tensor:
            return a.sum() + b.sum() * c

    first, second, last = executed(problem_source(Taking(), examples))["get_inputs"]()
    assert (first.shape, first.dtype) == ((1, 2), torch.int32)
    assert 3 <= int(first.min()) <= int(first.max()) <= 9
    assert (second.shape, second.dtype, last) == ((4,), torch.int64, 2.5)
    (made,) = executed(problem_source(Doubled(), module_at_hand.make_inputs))["get_inputs"]()
    assert made.shape == (6, 8)


class Nested(nn.Module):
    def forward(self, x: torch.Tensor, pair: tuple[torch.Tensor, float]) -> dict[str, Any]:
        if type(self).__name__ == "Model":  # the one that is written down is wrong, deep inside
            x = x + 1.0
        return {"results": [(pair[0], x)]}


class Silent(nn.Module):
    def forward(self, x: torch.Tensor) -> list[str]:
        return ["no tensor"]


def test_a_users_random_numbers_go_on() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    example = torch.ones(4, 8)
    problem_source(Doubled(), [example])
    assert torch.equal(torch.rand(3), expected)


def hooked() -> nn.Module:
    module = Gated(8)
    module.norm.register_forward_hook(lambda *_: None)
    return module


@pytest.mark.parametrize(
    ("module", "inputs", "says"),
    [
        (Gated(8), None, "needs inputs"),
        ("level", [(1,)], "takes a problem or a torch.nn.Module"),
        (Doubled(), [object()], "the model gets object as x"),
        (Doubled(), {"y": (1,)}, "missing a required argument: .x."),
        (Doubled(), lambda: [torch.ones(1)], "not a lambda"),
        (Doubled(), module_at_hand.make_inputs_from_outside, "uses UNUSED"),
        (Doubled(), [(2,), (2,)], "Doubled does not run with these inputs"),
        (hooked(), [(4, 8)], "LayerNorm has hooks"),
        (Nested(), [torch.ones(3), (torch.ones(3), 1.0)], "Nested, written down"),
        (Silent(), [(3,)], "it returns no tensor"),
        (Inner(torch.randn(100)), [(100,)], "Inner.scale holds Tensor"),
        (nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)), [(2, 4)], "written down"),
        (executed("import torch\nclass T(torch.nn.Module):\n  def forward(self, x):\n    return x")
         ["T"](), [(1,)], r"the source of T\.forward can't be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_down_is_refused(module: object, inputs: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        problem_source(module, inputs)
    assert "\n" not in str(caught.value)


CELLS = (
    "import torch\nfrom torch import nn\nK = 2.0\n"
    "class Mine(nn.Module):\n    def forward(self, x):\n        return torch.relu(x) * K",
    "from agent.written_problem import from_module\n"
    "print(from_module(Mine(), [torch.randn(3)]).path.read_text())",
)


def test_a_class_of_a_notebook_is_written_down() -> None:
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, CELLS)])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    assert "return torch.relu(x) * K" in notebook.cells[1].outputs[0].text
