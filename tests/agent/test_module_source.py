from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from agent.module_source import problem_source
from problems.errors import UsageError
from problems.loader import load_problem
from tests.agent import module_at_hand
from tests.agent.module_at_hand import Doubled, Gated


def executed(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(source, "problem.py", "exec"), namespace)
    return namespace


def test_the_file_computes_what_the_module_does(tmp_path: Path) -> None:
    module = Gated(8).eval()
    source = problem_source(module, [torch.randn(4, 8)], [8])
    path = tmp_path / "gated.py"
    path.write_text(source)
    assert load_problem(str(path)).id == "gated"
    made = executed(source)
    model = made["Model"](*made["get_init_inputs"]())
    model.load_state_dict(module.state_dict())
    (x,) = made["get_inputs"]()
    assert x.shape == (4, 8)
    torch.testing.assert_close(model(x), module(x))


def test_only_what_is_needed_comes_along() -> None:
    source = problem_source(Gated(8), [(4, 8)], [8])
    assert "SCALE = 0.5" in source
    assert "def gate" in source
    assert "UNUSED" not in source
    assert "Doubled" not in source
    assert "super(Model, self)" in source


def test_the_mode_of_the_instance_is_kept() -> None:
    for training in (True, False):
        made = executed(problem_source(Gated(8).train(training), [(4, 8)], [8]))
        assert made["Model"](8).training is training


def test_inputs_keep_shape_dtype_and_range() -> None:
    examples = [
        torch.randn(2, 3, dtype=torch.float64),
        torch.tensor([[3, 9]], dtype=torch.int32),
        torch.tensor([True, False]),
        torch.empty(0, dtype=torch.int64),
        2.5,
    ]
    made = executed(problem_source(Doubled(), examples, None))["get_inputs"]()
    for example, value in zip(examples[:-1], made[:-1], strict=True):
        assert (value.shape, value.dtype) == (example.shape, example.dtype)
    assert 3 <= int(made[1].min()) <= int(made[1].max()) <= 9
    assert made[-1] == 2.5


def test_inputs_may_be_shapes_or_a_function() -> None:
    made = executed(problem_source(Doubled(), [(2, 3), ((4,), "int64")], None))["get_inputs"]()
    assert [(tuple(value.shape), value.dtype) for value in made] == [
        ((2, 3), torch.float32),
        ((4,), torch.int64),
    ]
    made = executed(problem_source(Doubled(), module_at_hand.make_inputs, None))["get_inputs"]()
    assert made[0].shape == (6, 8)


class _Hidden:
    """Only reachable through a function."""

    @staticmethod
    def module() -> nn.Module:
        class Inner(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x

        return Inner()


@pytest.mark.parametrize(
    ("module", "inputs", "init_inputs", "told"),
    [
        (Gated(8), None, [8], "needs inputs="),
        (Gated(8), [(4, 8)], None, r"was made with arguments \(dim\)"),
        (Gated(8), [(4, 8)], [torch.ones(1)], "init_inputs= holds Tensor"),
        (Doubled(), [object()], None, "inputs= holds object"),
        (Doubled(), lambda: [torch.ones(1)], None, "not a lambda"),
        (Doubled(), module_at_hand.make_inputs_from_outside, None, "uses UNUSED"),
        (_Hidden.module(), [(1,)], None, "not defined at the top of a file"),
        (executed("class Typed:\n    pass\n")["Typed"](), [(1,)], None, "KernelBench's format"),
    ],
)
def test_what_cannot_be_written_down_is_refused(
    module: object, inputs: Any, init_inputs: Any, told: str
) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        problem_source(module, inputs, init_inputs)
    assert "\n" not in str(caught.value)
