"""Inputs that a recipe allows but rarely gives."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from evaluator.judge.bounds.work import Work, count_work
from evaluator.judge.inputs.input_kinds import InputKinds, kinds_for
from evaluator.judge.problem.reference import Reference
from evaluator.judge.problem.variation import (
    Kind,
    Variation,
    base,
    fresh_seed,
    kind_of,
    nearly,
    of_kind,
)
from evaluator.settings import Precision, Settings
from tests.task import task

WORK = Work(bytes_soft=0, bytes_read_hard=0, bytes_written_hard=0)
PROBLEM = task(
    "return x[labels] + share",
    x="torch.randn(64, 256)",
    share="torch.rand(32, 256)",
    labels="torch.randint(0, 64, (32,))",
)


def _reference() -> Reference:
    return Reference(PROBLEM, torch.device("cpu"), Precision.FP32)


def _inputs(seed: int) -> list[torch.Tensor]:
    return _reference().varied_inputs(seed)


def _beside_plain(kind: Kind) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Normal numbers, uniform ones and labels of one kind, each beside those of a plain draw."""
    seed = fresh_seed(kind)
    return list(zip(_inputs(of_kind(seed, Kind.PLAIN)), _inputs(seed), strict=True))


@pytest.mark.parametrize("kind", Kind)
def test_a_seed_names_its_kind_and_fixes_its_inputs(kind: Kind) -> None:
    seed = nearly(fresh_seed(kind))
    assert kind_of(seed) is kind
    for a, b in zip(_inputs(seed), _inputs(seed), strict=True):
        assert torch.equal(a, b)


def test_plain_draws_are_what_the_recipe_gives() -> None:
    seed = fresh_seed()
    for a, b in zip(_inputs(seed), _reference().fresh_inputs(base(seed)), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [(Kind.SMALLER, 0.12, 1.0), (Kind.UNEVEN, 0.12, 1.0), (Kind.LARGER, 96.0, 128.0)],
)
def test_real_numbers_are_scaled_and_labels_are_not(kind: Kind, least: float, most: float) -> None:
    normal, uniform, labels = _beside_plain(kind)
    assert torch.equal(*labels)
    for plain, varied in (normal, uniform):
        ratio = (varied / plain).nan_to_num(least)
        assert least * 0.999 <= float(ratio.min()) <= float(ratio.max()) <= most * 1.001
    uneven = float(ratio.max() - ratio.min()) > 0.1
    assert uneven == (kind is Kind.UNEVEN)


def test_signs_are_given_to_uniform_numbers_alone() -> None:
    normal, (plain, signed), labels = _beside_plain(Kind.SIGNED)
    assert torch.equal(*normal)
    assert torch.equal(*labels)
    assert torch.equal(plain, signed.abs())
    assert 0.4 < float((signed < 0).double().mean()) < 0.6


def test_rounding_biased_draws_shifts_all_of_them_in_one_direction() -> None:
    normal, uniform, labels = _beside_plain(Kind.BIASED)
    assert torch.equal(*labels)
    for plain, biased in (normal, uniform):
        assert torch.allclose(plain, biased, rtol=2**-7, atol=0)
        normal_in_fp16 = biased.abs() > 2**-14
        for rounded in (_to_11_bits(biased), biased.half().float()):
            larger = (rounded.abs() > biased.abs()) | ~normal_in_fp16
            same = (rounded == biased) | ~normal_in_fp16
            rows = [(bool(a.all()), bool(b.all())) for a, b in zip(larger, same, strict=True)]
            first = rows.index((True, False))
            assert first <= len(rows) // 2
            assert rows == [(False, True)] * first + [(True, False)] * (len(rows) - first)
        up = biased.bfloat16().float().abs() > biased.abs()
        assert (up | (biased == 0))[first:].all()
        assert not up[:first].any()


def _to_11_bits(x: torch.Tensor) -> torch.Tensor:
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def test_the_factors_of_the_verified_protocol_meet_the_finished_tensors() -> None:
    for kind, factor in ((Kind.TRIPLED, 3.0), (Kind.HUNDREDTH, 0.01), (Kind.NEGATED, -1.0)):
        normal, uniform, labels = _beside_plain(kind)
        assert torch.equal(*labels)
        for plain, varied in (normal, uniform):
            assert torch.equal(plain * factor, varied)


def test_what_is_made_of_draws_follows_them() -> None:
    """Targets of +1 and -1 stay what they are."""
    with Variation(fresh_seed(Kind.LARGER)):
        targets = torch.randint(0, 2, (100,)).float() * 2 - 1
        shares = torch.rand(4, 100).softmax(1)
    assert set(targets.tolist()) == {-1.0, 1.0}
    assert torch.allclose(shares.sum(1), torch.ones(4))


def test_near_inputs_differ_in_one_element_of_each_draw() -> None:
    seed = fresh_seed()
    near = nearly(seed)
    assert near != seed
    assert base(near) == base(seed)
    x, share, labels = (a != b for a, b in zip(_inputs(seed), _inputs(near), strict=True))
    assert int(x.sum()) == int(share.sum()) == 1
    # A label may have been changed for its equal.
    assert int(labels.sum()) <= 1
    assert int(_inputs(near)[2].max()) < 64


def test_a_near_repeat_of_a_near_repeat_is_no_exact_one():
    first = nearly(fresh_seed())
    second = nearly(first)
    drawn = []
    for seed in (first, second):
        torch.manual_seed(base(seed))
        with Variation(seed):
            drawn.append(torch.randn(64, 64))
    assert not torch.equal(*drawn)


@pytest.mark.parametrize("kind", [Kind.SMALLER, Kind.UNEVEN, Kind.LARGER])
def test_draws_that_go_together_keep_their_proportion(kind: Kind) -> None:
    """A mean that grows beside its spread would ask more of fp32 than the recipe does."""
    for _ in range(10):
        seed = fresh_seed(kind)
        with Variation(seed):
            torch.manual_seed(seed)
            mean = torch.randn(8, 32, 1)
            rows = torch.randn(8, 32, 500)
        shown = rows.std(-1, keepdim=True)
        assert float((mean.abs() / shown).max()) < 10


def test_a_few_draws_meet_all_kinds_that_a_protocol_uses() -> None:
    ours = kinds_for(Settings(), WORK)
    kinds = InputKinds(ours)
    assert {kinds.next() for _ in ours} == {
        *(Kind.PLAIN, Kind.SMALLER, Kind.UNEVEN, Kind.BIASED, Kind.LARGER, Kind.SIGNED)
    }
    verified = kinds_for(Settings(protocol="verified"), WORK)
    assert set(verified) == {Kind.PLAIN, Kind.TRIPLED, Kind.HUNDREDTH, Kind.NEGATED}
    for settings in (Settings(protocol="kernelbench"), Settings(inputs="recipe")):
        assert kinds_for(settings, WORK) == (Kind.PLAIN,)
    for work, kinds in (
        (replace(WORK, reads_values=True), {Kind.PLAIN}),
        (
            replace(WORK, asserts_values=True),
            {Kind.PLAIN, Kind.SMALLER, Kind.UNEVEN, Kind.BIASED},
        ),
    ):
        assert set(kinds_for(Settings(), work)) == kinds


@pytest.mark.parametrize(
    ("body", "reads", "asserts"),
    [
        ("x * 2", False, False),
        ("x * 2 if x.sum() > 0 else x", True, False),
        ("x * x.max().item()", True, False),
        ("torch.nn.functional.binary_cross_entropy(x.sigmoid(), x.sigmoid())", False, True),
        ("x[(x * 3).long().clamp(0, 3)]", False, True),
    ],
)
def test_what_a_module_does_with_values_is_seen(body: str, reads: bool, asserts: bool) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return eval(body, {"x": x, "torch": torch})

    work = count_work(Model(), [torch.rand(4, 4)])
    assert (work.reads_values, work.asserts_values) == (reads, asserts)


def test_a_kind_that_does_not_fit_is_not_used_again() -> None:
    kinds = InputKinds(kinds_for(Settings(), WORK))
    kinds.drop(Kind.SIGNED)
    assert Kind.SIGNED not in {kinds.next() for _ in range(50)}
