"""A loaded kernel runs where it is proven, gives what its module gives, and else is not there."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from agent.deployment import loaded_kernel
from agent.deployment.load import load
from agent.deployment.loaded_kernel import LoadedKernel
from agent.optimize import optimize
from evaluator.settings import Precision
from problems.errors import UsageError
from tests.agent.proven_kernel import NORM, NORM_IN_CPP, kernel_of, proven
from tests.command import ROOT
from tests.task import task


class Norm(nn.Module):
    """What `NORM` was written from."""

    eps = 1e-6

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(48) + 0.5)

    def forward(self, x, gain=1.0):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight * gain


@pytest.fixture
def norm(tmp_path: Path) -> LoadedKernel:
    return load(proven(tmp_path, NORM, NORM_IN_CPP), Norm())


X = torch.randn(6, 48)


def right(loaded: LoadedKernel, *args: object, **kwargs: object) -> str:
    """Who ran a call, whose result must be the original's."""
    before = dict(loaded.calls)
    torch.testing.assert_close(loaded(*args, **kwargs), loaded.original(*args, **kwargs))
    return next(name for name, number in loaded.calls.items() if number > before[name])


def test_the_kernel_runs_in_a_proven_case(norm: LoadedKernel) -> None:
    with torch.no_grad():
        assert right(norm, X) == right(norm, x=X) == "kernel"
    assert norm.cases == {"": True}
    assert list(norm.state_dict()) == ["weight"]
    assert isinstance(norm, Norm)


@torch.no_grad()
def test_the_original_runs_for_all_else(norm: LoadedKernel) -> None:
    assert right(norm, X) == "kernel"
    others = (X[:5],), (torch.randn(48, 6).t(),), (X.double(),), (X, 2.0), (X[None],)
    for given in others:
        assert right(norm, *given) == "original"
        assert norm.last_reason.startswith("no faster case has arguments of these shapes")


@torch.no_grad()
def test_a_call_like_the_last_is_not_looked_at_twice(
    block: LoadedKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.randn(4, 8)
    assert right(block, x) == "kernel"
    monkeypatch.setattr(loaded_kernel, "_route", lambda *_: "looked at again")
    assert right(block, x.clone()) == right(block, x=x, scale=2.0) == "kernel"
    for other in (
        torch._neg_view(x),
        torch.randn(33)[1:].view(4, 8),
        x.t().contiguous().t(),
        x[:3],
    ):
        assert right(block, other) == "original"
    assert right(block, x, 2) == "original"
    with torch.enable_grad():
        assert right(block, x) == "original"
    block.norm.weight.add_(1.0)
    assert right(block, x) == "original"


def test_a_gradient_is_never_dropped(norm: LoadedKernel, tmp_path: Path) -> None:
    other = copy.deepcopy(norm.original)
    x = X.clone().requires_grad_()
    assert right(norm, x) == "original" and "gradient" in norm.last_reason
    for module in (norm, other):
        module(x).sum().backward()
    torch.testing.assert_close(norm.weight.grad, other.weight.grad)
    assert x.grad is not None
    norm.requires_grad_(False)
    assert right(norm, X) == "kernel" and right(norm, x) == "original"
    strict = load(proven(tmp_path, NORM, NORM_IN_CPP), Norm(), gradient="raise")
    with pytest.raises(UsageError, match="a gradient is needed"):
        strict(X)
    with torch.no_grad():
        assert right(strict, X) == "kernel"


@torch.no_grad()
def test_changed_weights_are_noticed_and_folded_anew(tmp_path: Path) -> None:
    folds = kernel_of(
        NORM,
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.folded",
        constructed="self.folded = self.weight.detach().clone()",
    )
    norm = load(proven(tmp_path, NORM, folds), Norm())
    assert right(norm, X) == "kernel"
    norm.load_state_dict({"weight": torch.rand(48)})
    assert right(norm, X) == "kernel"
    norm.original.weight = nn.Parameter(torch.rand(48))
    assert right(norm, X) == "kernel"
    norm.weight.data = torch.rand(48)
    assert right(norm, X) == "kernel"
    for fused in (False, True):
        step = torch.optim.AdamW(norm.parameters(), lr=0.1, fused=fused)
        norm.weight.grad = torch.rand(48)
        step.step()
        assert right(norm, X) == "kernel"
    with torch.inference_mode():
        assert right(load(tmp_path, Norm()), X) == "kernel"
        norm.weight.add_(1.0)
        assert right(norm, X) == "kernel"
        norm.weight = nn.Parameter(torch.rand(48))
        assert right(norm, X) == "kernel"
        norm.weight.add_(1.0)
        assert right(norm, X) == "kernel"


@torch.no_grad()
def test_copies_have_weights_of_their_own(norm: LoadedKernel, tmp_path: Path) -> None:
    other, second = copy.deepcopy(norm), load(proven(tmp_path, NORM, NORM_IN_CPP), Norm())
    other.weight.mul_(3.0)
    assert other.original.weight is other.weight and norm.original.weight is norm.weight
    for each in (norm, other, second, norm, other):
        assert right(each, X) == "kernel"
    assert not torch.equal(norm(X), other(X))
    second.load_state_dict(norm.state_dict())
    assert torch.equal(norm(X), second(X))


@torch.no_grad()
def test_other_dtypes_and_devices(norm: LoadedKernel) -> None:
    norm.to(torch.bfloat16)
    assert right(norm, X.bfloat16()) == "original"
    assert right(norm, X) == "original" and "weight has another dtype" in norm.last_reason
    norm.float()
    assert right(norm, X) == "kernel"
    with torch.autocast("cpu", torch.bfloat16):
        assert right(norm, X) == "original" and "autocast" in norm.last_reason
    padded = torch.randn(6 * 48 + 1)[1:].view(6, 48)  # begins at an odd place
    assert right(norm, padded) == "kernel"


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@torch.no_grad()
def test_transforms_get_the_original(norm: LoadedKernel) -> None:
    assert right(norm, X) == "kernel"
    many = torch.randn(3, 6, 48)
    torch.testing.assert_close(torch.vmap(norm)(many), torch.vmap(norm.original)(many))
    _, tangent = torch.func.jvp(norm, (X,), (X,))
    torch.testing.assert_close(tangent, torch.func.jvp(norm.original, (X,), (X,))[1])
    assert norm.calls["kernel"] == 1
    traced = torch.jit.trace(norm, X)
    torch.testing.assert_close(traced(2 * X), norm.original(2 * X))


class Block(nn.Module):
    """A part of a model that has parts, a norm in whose mode all depends, and several results."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x, scale=2.0):
        y = self.norm(self.linear(x))
        return {"y": y, "both": (x * scale, None, y.sum(-1))}


BLOCK = task(
    "y = self.norm(self.linear(x))\nreturn {'y': y, 'both': (x * scale, None, y.sum(-1))}",
    init="self.linear = nn.Linear(8, 8)\nself.norm = nn.BatchNorm1d(8)\nself.eval()",
    x="torch.randn(4, 8)",
    scale="2.0",
)


@pytest.fixture
def block(tmp_path: Path) -> LoadedKernel:
    module = Block().eval()
    module.norm.running_mean.normal_()
    return load(proven(tmp_path, BLOCK, kernel_of(BLOCK)), module)


@torch.no_grad()
def test_nested_results_and_defaults(block: LoadedKernel) -> None:
    x = torch.randn(4, 8)
    assert right(block, x) == right(block, x, 2.0) == right(block, x=x, scale=2.0) == "kernel"
    assert right(block, x, scale=3.0) == "original"
    with pytest.raises(TypeError):
        block(x, other=1)


@torch.no_grad()
def test_a_changed_module_gets_the_original(block: LoadedKernel) -> None:
    x, before = torch.randn(4, 8), block.norm.running_mean.clone()
    assert right(block, x) == "kernel"
    block.train()(x)
    assert block.calls["original"] == 1 and not torch.equal(before, block.norm.running_mean)
    block.eval()
    seen: list[torch.Tensor] = []
    outer = block.register_forward_hook(lambda *_: seen.append(x))
    assert right(block, x) == "kernel" and seen
    outer.remove()
    inner = block.linear.register_forward_hook(lambda m, args, out: out + 1)
    assert right(block, x) == "original"
    inner.remove()
    assert right(block, x) == "kernel"
    block.linear = nn.Sequential(nn.Linear(8, 8))
    assert right(block, x) == "original" and "replaced" in block.last_reason


def test_compiled_and_exported(norm: LoadedKernel) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(norm, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(X), norm.original(X))
        norm.weight.add_(1.0)
        torch.testing.assert_close(compiled(X), norm.original(X))
        exported = torch.export.export(norm, (X,))
        assert "kernel_refinery" in str(exported.graph)
        torch.testing.assert_close(exported.module()(X), norm.original(X))
        with torch.autocast("cpu", torch.bfloat16):
            torch.testing.assert_close(compiled(X.bfloat16()), norm.original(X.bfloat16()))
        odd = torch.randn(48, 6).t()
        torch.testing.assert_close(compiled(odd), norm.original(odd))
    compiled(X).sum().backward()
    norm.weight.grad, found = None, norm.weight.grad
    norm.original(X).sum().backward()
    torch.testing.assert_close(found, norm.weight.grad)
    known = norm._deployment
    torch.library.opcheck(known.kernel.operator, (0, [X], [norm.weight.detach()]))


def test_compiled_with_a_dynamic_batch(block: LoadedKernel) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(block, fullgraph=True, dynamic=True, backend="aot_eager")
    with torch.no_grad():
        for rows in (5, 4, 7, 4):
            x = torch.randn(rows, 8)
            torch.testing.assert_close(compiled(x), block.original(x))
        rows = torch.export.Dim("rows", min=5, max=9)
        exported = torch.export.export(
            block, (x := torch.randn(6, 8),), dynamic_shapes=({0: rows},)
        )
        torch.testing.assert_close(exported.module()(x[:5]), block.original(x[:5]))


SLICES = {"6, 48 -> 6, 48": 2.0, "6, 48 -> 7, 48": 0.9, "6, 48 -> 8, 48": None}


@torch.no_grad()
def test_of_several_cases_the_kernel_gets_those_that_it_wins(tmp_path: Path) -> None:
    norm = load(proven(tmp_path, NORM, NORM_IN_CPP, speedups=SLICES), Norm())
    ran = [right(norm, torch.randn(rows, 48)) for rows in (6, 7, 8, 9)]
    assert ran == ["kernel", "original", "original", "original"]
    assert norm.cases == {"rows=6, 48": True, "rows=7, 48": False, "rows=8, 48": False}


@torch.no_grad()
def test_the_rival_is_chosen(tmp_path: Path) -> None:
    path = proven(tmp_path, NORM, NORM_IN_CPP, compiled=0.8)
    assert right(load(path, Norm()), X) == "kernel"
    loaded = load(path, Norm(), against="compile")
    assert right(loaded, X) == "original" and loaded.last_reason == "no case is faster here"
    with pytest.raises(UsageError, match="--baseline max_autotune"):
        load(path, Norm(), against="max_autotune")


@torch.no_grad()
def test_a_problem_in_half_precision(tmp_path: Path) -> None:
    kernel = kernel_of(NORM)
    norm = load(proven(tmp_path, NORM, kernel, precision=Precision.BF16, weights="derived"), Norm())
    assert right(norm, X.bfloat16()) == "original"
    norm.to(torch.bfloat16)
    assert right(norm, X.bfloat16()) == "kernel"


@pytest.mark.thorough
def test_readmes_example_is_optimised_and_loaded(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    problem = tmp_path / "my_module.py"
    source = text.split("```python")[1].split("```")[0]
    problem.write_text(source.replace("4096, 8192", "512, 1024").replace("8192", "1024"))
    options = {"temperature": 0, "budget": 1, "device": "cpu", "timing_seconds": 0.5}
    result = optimize(problem, output=str(tmp_path / "run"), **options)
    loaded = load(result)
    x = torch.randn(512, 1024)
    is_faster = result.details.verdict.timing.verdict == "faster"
    with torch.no_grad():
        assert right(loaded, x) == ("kernel" if is_faster else "original")
    assert right(loaded, x) == "original"  # its weight needs a gradient


WINDOW = task(
    "return x * self.factor",
    init="self.factor = factor",
    sizes={"factor": "1.5"},
    x="torch.randn(6, 48)",
)


@torch.no_grad()
def test_a_case_of_another_module_is_left_out(tmp_path: Path) -> None:
    cases = {"[1.5] -> [2.5]": 3.0, "[1.5] -> [1.5]": 2.0}
    path = proven(tmp_path, WINDOW, kernel_of(WINDOW), speedups=cases, weights="none")
    module = load(path).original
    module.factor = 1.5
    loaded = load(path, module)
    assert right(loaded, X) == "kernel"
    assert [*loaded.cases.values()] == [False, True]


def test_layers_of_a_kind_are_compiled_once(tmp_path: Path) -> None:
    torch._dynamo.reset()
    path = proven(tmp_path, NORM, NORM_IN_CPP)
    layers = [load(path, Norm()) for _ in range(9)]  # more than Dynamo compiles anew
    with torch.no_grad():
        for layer in layers:
            layer.compile(backend="eager", fullgraph=True)
            torch.testing.assert_close(layer(X), layer.original(X))


@torch.no_grad()
def test_the_users_defaults_change_nothing(tmp_path: Path) -> None:
    path, module = proven(tmp_path, NORM, NORM_IN_CPP), Norm()
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    state = torch.get_rng_state()
    try:
        loaded = load(path, module)
        assert right(loaded, X) == "kernel"
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
    assert torch.equal(state, torch.get_rng_state())


@torch.no_grad()
def test_weights_that_are_taken_in_order(tmp_path: Path) -> None:
    init = "self.a = nn.Parameter(torch.ones(48))\nself.b = nn.Parameter(torch.ones(48))"
    problem = task("return x * self.a + self.b", init=init, x="torch.randn(6, 48)")
    kernel = kernel_of(problem).replace("self.a", "self.gain").replace("self.b", "self.shift")

    class Affine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.b = nn.Parameter(torch.rand(48))
            self.a = nn.Parameter(torch.rand(48))

        def forward(self, x):
            return x * self.a + self.b

    affine = load(proven(tmp_path, problem, kernel, weights="ordered"), Affine())
    assert right(affine, X) == "kernel"
    affine.b.add_(1.0)
    assert right(affine.eval(), X) == "kernel"
    affine.a.data.add_(1.0)
    assert right(affine, X) == "kernel"


@torch.no_grad()
def test_values_that_never_changed_are_those_that_were_judged(tmp_path: Path) -> None:
    problem = task("return x + place", x="torch.randn(6, 48)", place="torch.arange(48)")
    kernel = kernel_of(problem, "return x + torch.arange(48)")  # which is right in every draw
    added = load(proven(tmp_path, problem, kernel, weights="none"))
    place = torch.arange(48)
    assert right(added, X, place) == right(added, X, place) == "kernel"
    assert right(added, X, place.flip(0)) == "original" and "other values" in added.last_reason
    place.add_(1)
    assert right(added, X, place) == "original"
    torch._dynamo.reset()
    compiled = torch.compile(added, fullgraph=True, backend="aot_eager")
    for values in (torch.arange(48), place):
        torch.testing.assert_close(compiled(X, values), X + values)


@torch.no_grad()
def test_a_table_that_is_changed_is_none_that_was_judged(tmp_path: Path) -> None:
    init = "self.register_buffer('mask', torch.ones(48).cumsum(0))"
    problem = task("return x * self.mask", init=init, x="torch.randn(6, 48)")
    masked = load(proven(tmp_path, problem, kernel_of(problem)))
    assert right(masked, X) == right(masked, X) == "kernel"
    masked.mask[3] = 7.0
    assert right(masked, X) == "original" and masked.last_reason.startswith("mask may have other")
    masked.mask[3] = 4.0
    assert right(copy.deepcopy(masked), X) == right(masked, X) == "kernel"
