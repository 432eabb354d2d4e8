"""The answer as the agent's parser will see it."""

import ast
from pathlib import Path

import pytest

from agent.config.run_config import RunConfig
from agent.prompt.answer import extract
from agent.prompt.prompt import Frame, Hardware, render_prompt
from agent.tuner import answer
from problems.loader import DEMO, load_problem
from problems.sizes import SizeClass
from tests.agent.tuner.families import module
from tests.agent.tuner.prompts import POINTWISE, SOFTMAX, prompt
from tests.agent.tuner.variants import renamed


def kernel(reference: str, **kw) -> str:
    code = extract(answer(prompt(reference, **kw), 0.0, 0), "stop").source
    assert code is not None
    return code


def test_one_block_with_a_plan_and_a_module() -> None:
    code = kernel(POINTWISE)
    assert code.startswith("# plan: map | ")
    classes = [n for n in ast.parse(code).body if isinstance(n, ast.ClassDef)]
    assert [c.name for c in classes] == ["ModelNew"]
    assert "get_inputs" not in code


def test_the_kernel_depends_on_nothing_but_the_computation() -> None:
    for name in DEMO:
        reference = load_problem(name).reference(SizeClass.CPU)
        ours, other = (
            kernel(r).split('r"""')[1].split('"""')[0] for r in (reference, renamed(reference))
        )
        assert ours == other


def test_parameters_and_helpers_are_kept() -> None:
    reference = (
        "from __future__ import annotations\n"
        "import math\nimport torch\nfrom torch import nn\n\nSCALE = math.sqrt(2.0)\n\n"
        "class Gate(nn.Module):\n"
        "    def __init__(self, n):\n"
        "        super().__init__()\n"
        "        self.weight = nn.Parameter(torch.ones(n) * SCALE)\n"
        "    def forward(self, x):\n"
        "        return x * torch.sigmoid(x * self.weight)\n\n"
        "class Model(nn.Module):\n"
        "    def __init__(self, n):\n"
        "        super(Model, self).__init__()\n"
        "        self.blocks = nn.Sequential(Gate(n), nn.Linear(n, n), nn.ReLU(), Gate(n))\n"
        "    def forward(self, x):\n"
        "        return self.blocks(x) + 1\n\n"
        "def get_inputs():\n    return [torch.randn(4, 8)]\n\n"
        "def get_init_inputs():\n    return [8]\n\n"
        "if __name__ == '__main__':\n    print(Model(8))\n"
    )
    code = kernel(reference)
    compile(code, "candidate", "exec")
    assert "super(ModelNew, self)" in code and "__main__" not in code
    assert "class Gate(nn.Module)" in code
    assert "SCALE = math.sqrt(2.0)" in code and "get_inputs" not in code
    assert "self.blocks[0].weight" in code and "self.blocks[1](" in code


@pytest.mark.parametrize(
    ("reference", "options", "said"),
    [
        (module("return torch.linalg.svd(x)", x="torch.randn(3, 3)"), {}, "svd"),
        (module("return x @ x", x="torch.randn(3, 3)"), {}, "leave to PyTorch"),
        ("not python at all (", {}, "not Python"),
        ("", {}, "Model"),
        (SOFTMAX.replace("return []", "return 3"), {}, "get_init_inputs"),
        (module("return x.sum(dim=0)", x="torch.randn(3, 3)"), {}, "leave to PyTorch"),
        (SOFTMAX, {"backend": "triton"}, "`triton`"),
        (SOFTMAX, {"precision": "fp16"}, "`fp16`"),
    ],
)
def test_what_it_cannot_do_it_says_in_prose(reference: str, options: dict, said: str) -> None:
    text = answer(prompt(reference, **options))
    assert said in text
    assert "```" not in text


def test_any_message_gets_an_answer() -> None:
    for messages in (
        [],
        [{"role": "user", "content": "hello"}],
        [{"role": "system", "content": ""}],
    ):
        assert "no kernel" in answer(messages)


def test_it_declines_what_must_be_right_at_sizes_that_it_is_not_shown() -> None:
    config = RunConfig.model_validate({"output": Path("x"), "backend": "cpp"})
    hardware = Hardware("some CPU")
    for hidden, declined in ((False, False), (True, True)):
        text = render_prompt(config, Frame(SOFTMAX, hardware, hidden), turn=0).text
        said = answer([{"role": "user", "content": text}], None, 0)
        assert ("```" not in said) is declined
        assert ("this one must know others" in said) is declined


FUNCTION = """import torch

def gated(x, y=None, *, slope=0.5, out=None):
    z = torch.relu(x) * slope
    if y is None:
        return z
    return z + y

class Model(torch.nn.Module):
    def forward(self, x, y=None, slope=0.5):
        return gated(x, y, slope=slope)

FUNCTION = "gated"
n = 64
arguments = lambda: (t0 := torch.randn(n, n), [t0, (t0 + 1.0), 0.25])[-1]

def get_inputs():
    return arguments()

def get_init_inputs():
    return []
"""


def test_a_function_is_written_for_what_it_is_called_with() -> None:
    code = kernel(FUNCTION)
    assert "def forward(self, x, y=None, slope=0.5)" in code
    # Other calls go to PyTorch: of other dtypes, without a tensor, with another number.
    assert "slope != 0.25 or type(x) is not torch.Tensor or type(y) is not" in code
    assert "y.dtype != torch.float32" in code
    half = FUNCTION.replace("randn(n, n)", "randn(n, n, dtype=torch.float16)")
    assert "not in fp32" in answer(prompt(half), 0.0, 0)
