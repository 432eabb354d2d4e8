"""Modules of any class become problems that do the same, with the inputs that they get."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.utils._pytree import tree_leaves

from agent import written_problem
from agent.optimize import optimize
from agent.recording.drawn_tensor import drawn
from agent.run import command
from agent.written_problem import WrittenProblem, from_module
from evaluator.command.command_line import serve
from evaluator.settings import Precision
from problems.errors import UsageError
from problems.loader import load_problem
from tests.agent import users_model
from tests.agent.users_model import Block, Gated, Stacked

FILE = users_model.__file__


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    torch.manual_seed(0)


def executed(written: WrittenProblem) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(written.path.read_text(), "problem.py", "exec"), namespace)
    return namespace


def test_the_file_has_what_forward_uses_and_no_more() -> None:
    written = from_module(Gated(8).eval(), [torch.randn(4, 8)])
    assert load_problem(str(written.path)).id.startswith("Gated_")
    made = executed(written)
    assert not made["Model"]().training
    assert {*made} >= {"SCALE", "gate"} and not {*made} & {"UNUSED", "Stacked", "users_model"}
    assert [tuple(each.shape) for each in made["get_inputs"]()] == [(4, 8)]


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Sequential(nn.Linear(4, 8, bias=False), nn.GELU(approximate="tanh")), (2, 4)),
        (nn.GELU(), (3, 4)),
        (nn.Conv2d(3, 8, 3, padding=1, stride=2), (2, 3, 8, 8)),
        (nn.LSTM(4, 8, 2, batch_first=True, bidirectional=True), (2, 5, 4)),
        (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval(), (2, 5, 16)),
        (Stacked(), (3, 8)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_any_class_is_written_down(module: nn.Module, shape: tuple[int, ...]) -> None:
    written = from_module(module, torch.randn(shape))  # compares what both give
    made = executed(written)["Model"]()
    assert {*made.state_dict()} == {*module.state_dict()}
    for name, table in made.named_buffers():
        assert torch.equal(table, module.get_buffer(name))


def test_a_users_random_numbers_go_on() -> None:
    expected = torch.rand(3)
    torch.manual_seed(0)
    from_module(nn.ReLU(), [torch.ones(4, 8)])
    assert torch.equal(torch.rand(3), expected)


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


def test_sizes_that_vary_become_cases_with_their_share() -> None:
    model, inputs = users_model.build()
    made = executed(written := from_module(model, inputs, "mlp"))
    assert made["CASES"] == [
        {"size_0": 32, "weight": 0.75},
        {"size_0": 4, "weight": 0.25},
    ]
    (x,) = made["get_inputs"]()
    assert x.shape == (32, 8) and not made["Model"]().training
    assert not written.notes
    assert not any(each._forward_pre_hooks for each in model.modules())


def test_the_weights_lie_beside_the_file_and_make_another_problem() -> None:
    model, inputs = users_model.build()
    written = from_module(model, inputs, "mlp")
    kept = load_file(written.path.with_suffix(".safetensors"))
    torch.testing.assert_close(kept, dict(model.mlp.state_dict()), rtol=0, atol=0)
    again = from_module(model, inputs, "mlp")
    with torch.no_grad():
        model.mlp[0].weight += 0.001
    assert from_module(model, inputs, "mlp").path != written.path == again.path


@pytest.mark.parametrize(
    ("build", "name", "shapes"),
    [
        (users_model.bert, "embeddings", [(2, 7)]),
        (users_model.bert, "encoder.layer.1.attention.self", [(2, 7, 32), (2, 1, 7, 7)]),
        (users_model.bert, "encoder.layer.0", [(2, 7, 32), (2, 1, 7, 7)]),
        (users_model.llama, "layers.0.input_layernorm", [(2, 7, 32)]),
        (users_model.llama, "layers.0.mlp", [(2, 7, 32)]),
        (users_model.llama, "layers.1.self_attn", [(2, 7, 32), (1, 7, 8), (1, 7, 8)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_submodules_of_transformers(build: Any, name: str, shapes: list[Any]) -> None:
    model, inputs = build()
    written = from_module(model, inputs, name)
    made = executed(written)
    found = [each for each in tree_leaves(made["get_inputs"]()) if isinstance(each, torch.Tensor)]
    assert [tuple(each.shape) for each in found] == shapes
    assert written.precision == (Precision.BF16 if build is users_model.llama else None)
    assert {*made["Model"]().state_dict()} == {*model.get_submodule(name).state_dict()}
    assert not {"BertModel", "LlamaModel", "users_model"} & {*made}
    with torch.no_grad():
        results = tree_leaves([made["Model"]()(*made["get_inputs"]())])
    assert all(each.isfinite().all() for each in results if each is not None)


class Served(nn.Module):
    """Its part gets an own number of arguments in some calls."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.part = Part()
        self.norm.eval()

    def forward(self, x: torch.Tensor, scale: float | None = None) -> torch.Tensor:
        x = self.norm(x)
        return self.part(x) if scale is None else self.part(x, scale, loud=False)


class Part(nn.Module):
    def forward(self, x: torch.Tensor, scale: float = 1.0, **words: Any) -> torch.Tensor:
        return x.mul_(scale)  # in place


def test_calls_of_another_kind_are_left_out_and_told() -> None:
    inputs = [(torch.ones(2, 4),), {"x": torch.ones(2, 4), "scale": 2.0}, (torch.ones(3, 4),)]
    written = from_module(Served(), inputs, "part")
    assert written.notes == (
        "1 of 3 calls are left out: they had other inputs than most, not only other sizes",
    )
    made = executed(written)
    assert [case["weight"] for case in made["CASES"]] == [0.5, 0.5]
    made = executed(from_module(Served(), inputs[1], "part"))
    assert made["get_inputs"]()[1] == 2.0


def test_each_part_keeps_its_mode() -> None:
    model = executed(from_module(Served(), torch.ones(2, 4)))["Model"]()
    assert (model.training, model.norm.training, model.part.training) == (True, False, True)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(4, 6, 8).transpose(1, 2),
        torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.randn(2, 1, 5).expand(2, 3, 5),
        torch.full((5, 5), float("-inf")).triu(1),
        torch.ones(4, 9, dtype=torch.bool).tril(),
        torch.randint(3, 9, (4, 4), dtype=torch.int32),
        torch.randn(64, 64, dtype=torch.bfloat16) * 0.01 + 3.0,
        torch.full((4, 4), 7.0),
        torch.tensor(0.5),
        torch.empty(0, 3),
        torch.randn(3, dtype=torch.complex64),
    ],
    ids=lambda tensor: f"{tensor.dtype}{tuple(tensor.shape)}",
)
def test_a_drawn_tensor_is_of_the_kind_of_the_recorded_one(tensor: torch.Tensor) -> None:
    made = eval(drawn(tensor, tensor.shape))
    assert (made.shape, made.dtype, made.stride()) == (tensor.shape, tensor.dtype, tensor.stride())
    if tensor.dtype is torch.bool or tensor.isinf().any():
        assert {*made.unique().tolist()} == {*tensor.unique().tolist()}
        assert (made == tensor.max()).any(-1).all()  # no row of a mask hides everything
        return
    if tensor.numel() > 1 and not tensor.is_complex():
        assert made.unique().numel() > 1  # no constant that a kernel could rely on
        assert abs(made.double().mean() - tensor.double().mean()) < 2.0
        assert bool((made >= 0).all()) or not bool((tensor >= 0).all())


@pytest.mark.thorough
def test_the_command_makes_the_problem_in_another_process(
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = ["--from", f"{FILE}:build", "--module", "mlp", "--dry-run", "--json"]
    assert serve(command, "run", words) == 0
    out, err = capfd.readouterr()
    plan = json.loads(out)
    (name,) = plan["config"]["problems"]
    assert name.startswith("Sequential_")
    assert "what a user prints" in err
    assert "class Model(nn.Sequential)" in plan["prompt"]
    assert "Block" not in plan["prompt"]


def without_source() -> nn.Module:
    made: dict[str, Any] = {}
    exec("import torch\nclass T(torch.nn.Module):\n  def forward(self, x):\n    return x", made)
    return made["T"]()


def hooked() -> nn.Module:
    module = Gated(8).eval()
    module.norm.register_forward_hook(lambda *given: given[-1] * 2)
    return module


ROWS = torch.randn(2, 8)


@pytest.mark.parametrize(
    ("module", "inputs", "name", "told"),
    [
        (Gated(8), None, "", "needs inputs"),
        (3, ROWS, "", "takes a problem or a torch.nn.Module"),
        (Block(), ROWS, "mpl", "Block has no module 'mpl'; it has mlp"),
        (Block(), ROWS, "unused", "unused is not called when the model runs"),
        (Block(), "a text", "", "Block does not run with these inputs: TypeError"),
        (Block(), torch.ones(2, 9), "", "Block does not run with these inputs: RuntimeError"),
        (Gated(8), {"y": ROWS}, "", "missing a required argument: 'x'"),
        (users_model.Given(), ROWS, "inner", "inner gets object as settings"),
        (without_source(), ROWS, "", "the source of T.forward can't be read"),
        (Block(), ROWS, "called", "<lambda> is not made with def: write it as a function"),
        (Block(), ROWS, "whole", "Whole.forward uses whole, which the judge can't import"),
        (users_model.Constants(), torch.ones(100), "", "Constants.index holds 100 constants, too"),
        (nn.utils.parametrizations.weight_norm(nn.Linear(8, 4)), ROWS, "", "Linear, written down"),
        (hooked(), ROWS, "", "Gated, written down, does not do what it did (results differ by"),
        (users_model.Other(), (ROWS, (ROWS, 1.0)), "", "Other, written down, does not"),
        (users_model.Named(), {"x": ROWS, "scale": 2.0}, "", "Named, written down, does not"),
        (users_model.Silent(), ROWS, "", "does not do what it did (results are no tensors"),
    ],
)
def test_what_is_refused_is_told_in_one_line(
    module: object, inputs: Any, name: str, told: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(told)) as caught:
        from_module(module, inputs, name)
    assert "\n" not in str(caught.value)
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("nothing.py:build", "nothing.py:build: give the function of a file"),
        (FILE, ": give the function of a file, like my_model.py:build"),
        (f"{FILE}:buidl", "has no function buidl; did you mean build?"),
        (f"{FILE}:raising", "raised ValueError: no weights here"),
        (f"{FILE}:one_value", "returns Block; it must return (model, inputs)"),
    ],
)
def test_a_bad_file_is_one_line(
    reference: str,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here, instead of in a process that imports everything for each of them."""
    monkeypatch.setattr(written_problem, "from_file", written_problem._from_file)
    assert serve(command, "run", ["--from", reference]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and told in line
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("given", "options", "told"),
    [
        ((nn.ReLU(), torch.ones(2)), {"problems": ["mine.py"]}, "--problem beside a model"),
        (("level1_7_rms_norm",), {"module": "mlp"}, "module= names a part"),
        (("level1_7_rms_norm",), {"bugdet": 3}, "option 'bugdet': did you mean 'budget'"),
        (("nope",), {}, "no problem 'nope'"),
    ],
)
def test_mistakes_of_a_call(given: tuple[Any, ...], options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        optimize(*given, **options)


def test_a_part_of_a_model_needs_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(command, "run", ["--module", "mlp"]) == 2
    assert "--from FILE:FUNCTION; add that" in capsys.readouterr().err
