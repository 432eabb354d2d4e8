"""A loaded kernel runs where it is proven, gives what its module gives, and else is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from agent.deployment.load import load
from agent.deployment.loaded_kernel import LoadedKernel
from tests.agent.proven_kernel import NORM, NORM_IN_CPP, proven


class Norm(nn.Module):
    """What `NORM` was written from."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(48) + 0.5)

    def forward(self, x, gain=1.0):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight * gain


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
    (case,) = norm.cases
    assert case.uses_kernel and case.speedup == 2.0
    assert list(norm.state_dict()) == ["weight"]
    assert isinstance(norm, Norm)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ((X[:5],), "of another shape"),
        ((torch.randn(48, 6).t(),), "not contiguous"),
        ((X.double(),), "of another dtype"),
        ((X.to("meta"),), "not timed on this device"),
        ((X, 2.0), "another value"),
        ((X.view(2, 3, 48),), "of another shape"),
    ],
)
@torch.no_grad()
def test_the_original_runs_for_all_else(norm: LoadedKernel, given: tuple, why: str) -> None:
    if given[0].is_meta:
        norm.to("meta")
        assert norm(*given).is_meta
        return
    assert right(norm, *given) == "original"
    assert why in norm.last_reason
