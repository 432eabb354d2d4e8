"""A kernel in a model: put in where it fits, measured with it, and taken out again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from agent.apply import command
from agent.deployment.applied import apply
from agent.deployment.loaded_kernel import LoadedKernel
from agent.recording.difference import difference
from evaluator.command.command_line import serve
from problems.errors import UsageError
from tests.agent.proven_kernel import kernel_of, proven
from tests.task import task

SLOW = task(
    "for _ in range(200):\n    x = x + 0.015 * self.weight\nreturn x",
    init="self.weight = nn.Parameter(torch.ones(dim))",
    sizes={"dim": "48"},
    x="torch.randn(64, 48)",
)
FAST = kernel_of(SLOW, "return x + 3.0 * self.weight")
X = torch.randn(64, 48)
QUICK: dict[str, Any] = {"seconds": 0.1, "compiled": False}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Others on this machine do not hold up the one that waits for all."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Slow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(48))

    def forward(self, x):
        for _ in range(200):
            x = x + 0.015 * self.weight
        return x


class Scaled(nn.Module):
    """So near 1 that results hardly tell."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return torch.relu(x) * self.scale


class Other(nn.Module):
    """Its weights have the same names and shapes; it takes more."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(48))

    def forward(self, x, y):
        return x + y * self.weight


class Users(nn.Module):
    """One of its parts has two names, and a hook."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Slow()
        self.parts = nn.ModuleList([nn.Linear(48, 48), self.first, Slow()])
        self.other = Other()

    def forward(self, x):
        x = self.first(x)
        for part in self.parts:
            x = part(x)
        return {"found": [self.other(x, 2.0)]}


def build() -> tuple[nn.Module, Any]:
    return Users().eval(), (X,)


def same_again() -> tuple[nn.Module, Any]:
    return nn.Sequential(nn.Linear(48, 48)), X


@torch.no_grad()
def test_all_that_fits_is_replaced_measured_and_undone(tmp_path: Path) -> None:
    model, seen = Users().eval(), []
    model.first.register_forward_hook(lambda *_: seen.append(1))
    parts, state = dict(model.named_modules()), model.state_dict(keep_vars=True)
    before = model(X)["found"]
    applied = apply(model, proven(tmp_path, SLOW, FAST), X, **QUICK)
    assert [*applied.places.loaded] == ["first", "parts.1", "parts.2"]
    assert applied.kept and applied.model is model and model.first is model.parts[1]
    assert isinstance(model.first, LoadedKernel) and isinstance(model.parts[2], LoadedKernel)
    seen.clear()
    torch.testing.assert_close(model(X)["found"], before, rtol=1e-2, atol=1e-2)
    assert len(seen) == 2
    assert model.first.calls["original"] == 0 < model.first.calls["kernel"]
    after = model.state_dict(keep_vars=True)
    assert [*after] == [*state] and all(after[name] is state[name] for name in state)
    assert applied.speedup > 1 and applied.eager.low > 1 and 0 < applied.share <= 1
    first, second = applied.lines()
    assert first.startswith("first, parts.1, parts.2 ") and "% of the time; model " in first
    assert first.endswith("compiled not timed") and "results differ by" in second
    assert applied.undo() is model
    assert dict(model.named_modules()) == parts
    assert not model.first._forward_pre_hooks and len(model.first._forward_hooks) == 1


def test_where_nothing_is_gained_nothing_is_kept(tmp_path: Path) -> None:
    model = Users()
    slower = "for _ in range(600):\n            x = x + self.weight / 200\n        return x"
    path = proven(tmp_path, SLOW, kernel_of(SLOW, slower))
    parts = dict(model.named_modules())
    applied = apply(model, path, X, module="first", **QUICK)
    assert [*applied.places.loaded] == ["first", "parts.1"]
    assert not applied.kept and dict(model.named_modules()) == parts
    assert [*applied.lines()][-1] == "nothing is gained: the model is as it was"
    assert apply(model, path, X, module="first", keep="always", **QUICK).kept
    assert isinstance(model.first, LoadedKernel)


def test_a_whole_model_is_another_object(tmp_path: Path) -> None:
    model = Slow()
    applied = apply(model, proven(tmp_path, SLOW, FAST), {"x": X}, **QUICK)
    assert isinstance(applied.model, LoadedKernel) and applied.model.weight is model.weight
    assert applied.undo() is model


def test_calls_of_other_shapes_run_the_original_and_are_told(tmp_path: Path) -> None:
    inputs = [(X,), (torch.randn(3, 48),)]
    applied = apply(nn.Sequential(Slow()), proven(tmp_path, SLOW, FAST), inputs, **QUICK)
    (line,) = [line for line in applied.lines() if "the original ran" in line]
    assert line.startswith("the original ran, too, in 0: ") and "shapes" in line


def test_a_model_whose_results_change_is_left_alone(tmp_path: Path) -> None:
    """Far from the drawn inputs the kernel is wrong."""
    kernel = kernel_of(SLOW, "return torch.where(x > 100, x, x + 3.0 * self.weight)")
    model = nn.Sequential(Slow())
    with pytest.raises(UsageError, match="the model's results differ by"):
        apply(model, proven(tmp_path, SLOW, kernel), torch.full((64, 48), 101.0), **QUICK)
    assert type(model[0]) is Slow


def test_a_number_that_results_hardly_show_is_compared(tmp_path: Path) -> None:
    problem = task(
        "return torch.relu(x) * self.scale", init="self.scale = 1.0", x="torch.randn(64, 48)"
    )
    path = proven(tmp_path, problem, kernel_of(problem), weights="none")
    model = nn.Sequential(Scaled(), Scaled(1.0001), nn.Dropout(0.0))
    applied = apply(model, path, X, keep="always", **QUICK)
    assert [*applied.places.loaded] == ["0"]
    with pytest.raises(UsageError, match="this Scaled, which has another scale"):
        apply(model, path, X, module="1", **QUICK)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_command_times_both_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = proven(tmp_path, SLOW, FAST)
    code = serve(
        command, "apply", [f"{__file__}:build", "--kernel", str(path), "--module", "first"]
    )
    assert code == 0
    first, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("first, parts.1 ") and "compiled not" not in first


BAD = [
    (["x.py:build"], "give the function of a file"),
    ([f"{__file__}:build", "--module", "frist"], "has no module 'frist'; it has first"),
    ([f"{__file__}:build", "--module", "other"], "Other can't be traced"),
    ([f"{__file__}:same_again"], "none has such parts and weights"),
    ([f"{__file__}:build", "--against", "compile"], "has no figure against compile"),
    ([f"{__file__}:build", "--kernel", "{folder}/nothing.py"], "can't read"),
]


@pytest.mark.parametrize(("words", "told"), BAD, ids=[told for _, told in BAD])
def test_a_mistake_is_one_line(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = proven(tmp_path, SLOW, FAST)
    given = [word.format(folder=tmp_path) for word in words]
    assert serve(command, "apply", ["--kernel", str(path), *given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and told in line


def test_a_result_that_became_nan_differs_whatever_else_is_right() -> None:
    right, wrong = torch.ones(3), torch.tensor([1.0, float("nan"), 1.0])
    off, allowed = difference([right, right, right], [right, wrong, right])
    assert not off <= allowed
    off, allowed = difference([wrong, right], [wrong, right])
    assert off == 0.0
