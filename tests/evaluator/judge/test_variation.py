"""Inputs that a recipe allows but rarely gives."""

from __future__ import annotations

import torch

from evaluator.evaluation import Precision
from evaluator.judge.reference import Reference
from evaluator.judge.variation import Variation, base, fresh_seed, nearly

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, labels):
        return x[labels]

def get_inputs():
    return [torch.randn(64, 256), torch.randint(0, 64, (32,))]

def get_init_inputs():
    return []
"""


def _inputs(seed: int) -> list[torch.Tensor]:
    reference = Reference(PROBLEM, torch.device("cpu"), Precision.FP32)
    return reference.varied_inputs(seed)


def _seed_of_kind(kind: int) -> int:
    return base(fresh_seed()) & ~3 | kind


def test_a_seed_fixes_its_inputs() -> None:
    for kind in range(4):
        seed = nearly(_seed_of_kind(kind))
        for a, b in zip(_inputs(seed), _inputs(seed), strict=True):
            assert torch.equal(a, b)


def test_plain_draws_are_what_the_recipe_gives() -> None:
    seed = _seed_of_kind(0)
    reference = Reference(PROBLEM, torch.device("cpu"), Precision.FP32)
    for a, b in zip(_inputs(seed), reference.fresh_inputs(seed), strict=True):
        assert torch.equal(a, b)


def test_scales_become_smaller_and_never_larger() -> None:
    reference = Reference(PROBLEM, torch.device("cpu"), Precision.FP32)
    for kind in (2, 3):
        seed = _seed_of_kind(kind)
        plain, varied = reference.fresh_inputs(seed)[0], _inputs(seed)[0]
        ratio = (varied / plain).nan_to_num(1.0)
        assert 0.12 < float(ratio.min()) <= float(ratio.max()) <= 1.0 + 1e-6
        uneven = float(ratio.max() - ratio.min()) > 0.1
        assert uneven == (kind == 3)


def test_near_inputs_differ_in_one_element_of_each_draw() -> None:
    seed = fresh_seed()
    near = nearly(seed)
    assert near != seed
    assert base(near) == base(seed)
    x, labels = (a != b for a, b in zip(_inputs(seed), _inputs(near), strict=True))
    assert int(x.sum()) == 1
    # A label may have been changed for its equal.
    assert int(labels.sum()) <= 1
    assert int(_inputs(near)[1].max()) < 64


def test_near_repeats_of_the_same_inputs_differ_from_each_other():
    seed = fresh_seed()
    for _ in range(200):
        near = nearly(seed)
        assert near != seed
        assert base(near) == base(seed)
        seed = near


def test_a_near_repeat_of_a_near_repeat_is_no_exact_one():
    first = nearly(fresh_seed())
    second = nearly(first)
    drawn = []
    for seed in (first, second):
        torch.manual_seed(base(seed))
        with Variation(seed):
            drawn.append(torch.randn(64, 64))
    assert not torch.equal(*drawn)


def test_draws_that_go_together_keep_their_proportion():
    """A mean that grows beside its spread would ask more of fp32 than the recipe does."""
    for kind in (2, 3):
        for _ in range(10):
            seed = _seed_of_kind(kind)
            with Variation(seed):
                torch.manual_seed(seed)
                mean = torch.randn(8, 32, 1)
                rows = torch.randn(8, 32, 500)
            shown = rows.std(-1, keepdim=True)
            assert float((mean.abs() / shown).max()) < 10
