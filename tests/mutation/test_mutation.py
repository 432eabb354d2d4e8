"""Rules make the mistakes that they are named for, and the judge finds them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.mutation import cpp_rules, output_rules, python_rules
from tests.mutation.argument import read_arguments
from tests.mutation.edit import Edit, Rule
from tests.mutation.evidence import ADVERSARIAL, FRESH, VARIED, gather
from tests.mutation.judged import read
from tests.mutation.mutant import RULES, draw, of
from tests.mutation.output_rules import SPOILERS
from tests.mutation.run import run
from tests.mutation.subject import Subject, by_operators, subjects
from tests.mutation.summary import wilson

REFERENCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n))
        self.norm = nn.LayerNorm(n)

    def forward(self, x, k):
        {body}

def get_inputs():
    return [torch.randn(64, 8), torch.randint(0, 8, (64,))]

def get_init_inputs():
    return [8]
"""


def rule(rules: tuple[Rule, ...], name: str) -> Rule:
    return next(r for r in rules if r.name == name)


def made(subject: Subject, which: Rule) -> set[str]:
    """The changed lines, without their indentation."""
    before = subject.source.splitlines()
    return {
        " ".join(line.split())
        for mutant in of(subject, which)
        for line in mutant.source.splitlines()
        if line not in before
    }


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("minus for plus", "v = a + b[i];", {"v = a - b[i];"}),
        ("operands swapped", "v = x0 - v1;", {"v = v1 - x0;"}),
        ("term dropped", "v = a + b;", {"v = a;", "v = b;"}),
        ("factor dropped", "v = a * 2;", {"v = a;"}),
        ("whole division", "v = a / b;", {"v = (float)((int64_t)(a) / (int64_t)(b));"}),
        ("constant off by 0.1 %", "v = a * 0.5f;", {"v = a * 0.5005f;"}),
        ("epsilon", "v = a + 1e-5f;", {"v = a + 0.0001f;", "v = a + 1e-06f;", "v = a + 0.0f;"}),
        ("index off by one", "q[i] = v;", {"q[i + 1] = v;", "q[i - 1] = v;"}),
        ("stride off by one", "p = a + r * 7;", {"p = a + r * 8;", "p = a + r * 6;"}),
        ("bound too far", "for (int i = 0; i < n; ++i)", {"for (int i = 0; i <= n; ++i)"}),
        ("bound too near", "for (int i = 0; i < n; ++i)", {"for (int i = 0; i < (n) - 1; ++i)"}),
        ("first left out", "for (int i = 0; i < n; ++i)", {"for (int i = 1; i < n; ++i)"}),
        ("tail dropped", "for (; i < 100; ++i)", {"for (; i < 100 / 8 * 8; ++i)"}),
        ("every second left out", "for (; i < n; ++i)", {"for (; i < n; i += 2)"}),
        ("comparison turned", "c = x > c ? x : c;", {"c = x < c ? x : c;"}),
        ("mask forgotten", "v = m ? a : b;", {"v = m || true ? a : b;"}),
        ("wrong start", "double c = 0;", {"double c = 1;"}),
        ("no start", "float c = -INFINITY;", {"float c;"}),
        ("negation lost", "v = -a;", {"v = a;"}),
        ("sign", "const float v1 = a;", {"const float v1 = -(a);"}),
        ("other variable", "v9 = x1 * v3;", {"v9 = x0 * v3;", "v9 = x1 * v2;"}),
        ("fp16 on the way", "float v = a;", {"float v = (float)(_Float16)(a);"}),
        ("sum in fp16", "s += a;", {"s = (float)(_Float16)(s + a);"}),
        ("sum in fp16", "s = s + a;", {"s = (float)(_Float16)(s + a);"}),
        ("other function", "v = expf(a);", {"v = expm1f(a);", "v = exp2f(a);"}),
        (
            "no reduction over threads",
            "#pragma omp parallel for reduction(+:s)",
            {"#pragma omp parallel for"},
        ),
        ("bound too far", "for (int64_t task = 0; task < 3; ++task)", set()),
        ("minus for plus", 'TORCH_CHECK(a + b == c, "sizes");', set()),
    ],
)
def test_rules_for_cpp(name: str, line: str, expected: set[str]) -> None:
    subject = Subject("", "", "hand", "", f'SOURCE = r"""\n  {line}\n"""\n')
    assert made(subject, rule(cpp_rules.RULES, name)) == expected


def test_lines_that_only_removal_changes() -> None:
    text = "#pragma omp atomic\n  s[0] += 1;\n"
    subject = Subject("", "", "hand", "", f'SOURCE = r"""\n  {text}"""\n')
    for name, left in (("not atomic", "s[0] += 1"), ("statement lost", "#pragma omp atomic")):
        (mutant,) = of(subject, rule(cpp_rules.RULES, name))
        assert left in mutant.source
        assert len(mutant.source.split()) < len(subject.source.split())


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("operator", "return x + self.w", {"return ((x) - (self.w))"}),
        ("operands swapped", "return x / self.w", {"return ((self.w) / (x))"}),
        ("term or factor dropped", "return x - self.w", {"return (x)"}),
        ("constant", "return x.sum(1, keepdim=True)", {
            "return x.sum(2, keepdim=True)", "return x.sum(0, keepdim=True)",
            "return x.sum(1, keepdim=False)"}),
        ("epsilon", "return x + 1e-5", {
            "return x + 0.0001", "return x + 1.0000000000000002e-06", "return x + 0.0"}),
        ("dimension", "return x.softmax(-1)", {"return x.softmax(-2)", "return x.softmax(0)"}),
        ("keyword dropped", "return x.sum(1, keepdim=True)", {"return x.sum(1)"}),
        ("other function", "return F.relu(x)", {"return F.gelu(x)"}),
        ("other function", "return torch.relu(x)", {"return F.gelu(x)"}),
        ("approximate gelu", "return F.gelu(x)", {
            "return F.gelu(x, approximate='tanh')",
            "return (lambda g: g * torch.sigmoid(1.702 * g))(x)"}),
        ("other correction of a variance", "return x.var(1)", {"return x.var(1, correction=0)"}),
        ("sign", "return -x", {"return (x)"}),
        ("comparison", "return (x > 0).float()", {"return (((x) < (0))).float()"}),
        ("transposition lost", "return x @ x.T", {"return x @ x"}),
        ("arguments swapped", "return torch.sub(x, self.w)", {"return torch.sub(self.w, x)"}),
        ("other variable", "return x * k[:, None]", {
            "return k * k[:, None]", "return x * x[:, None]"}),
        ("parameter ignored", "return x * self.w", {
            "return x * torch.zeros_like(self.w)", "return x * torch.ones_like(self.w)",
            "return x * self.w.flip(0)"}),
        ("fp16 on the way", "return x + k[:, None]", {
            "return ((x).half().to((x).dtype)) + k[:, None]",
            "return ((x + k[:, None]).half().to((x + k[:, None]).dtype))"}),
    ],
)  # fmt: skip
def test_rules_for_python(name: str, body: str, expected: set[str]) -> None:
    reference = REFERENCE.format(body=body)
    subject = Subject("", "", "operators", reference, by_operators(reference))
    lines = made(subject, rule(python_rules.RULES, name))
    # `__init__` has constants and modules of its own.
    assert {line for line in lines if line.startswith("return")} == expected


def test_layers_lose_their_weights() -> None:
    reference = REFERENCE.format(body="return self.norm(x)")
    subject = Subject("", "", "operators", reference, by_operators(reference))
    lines = made(subject, rule(python_rules.RULES, "layer's weight or bias ignored"))
    assert len(lines) == 6
    assert any("{'bias': torch.zeros_like(self.norm.bias)}, (x,)" in line for line in lines)


@pytest.mark.parametrize("name", SPOILERS)
def test_spoilers_spoil_what_they_fit(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    candidates = [
        torch.randn(64, 9, generator=generator),
        torch.randint(1, 9, (64, 9), generator=generator),
        torch.rand(64, 9, generator=generator) > 0.5,
    ]
    fits, body = SPOILERS[name]
    fitting = [y for y in candidates if fits(y)]
    assert fitting
    for right in fitting:
        # What is not written holds what lay there before: not the right values, by chance.
        del [torch.full_like(right, True) for _ in range(64)][:]
        namespace = {"torch": torch, "_spread": lambda y: y.double().std().item()}
        lines = body.replace("; ", "\n    ")
        exec(f"def spoiled(y, last=[None]):\n    {lines}\n", namespace)
        spoiled = namespace["spoiled"]
        if name == "that of the call before":
            spoiled(right + 1)
        wrong = spoiled(right.clone())
        same_form = wrong.shape == right.shape and wrong.dtype == right.dtype
        assert not (same_form and torch.equal(wrong, right))


def test_outputs_that_a_spoiler_does_not_fit_are_left_out() -> None:
    (arg,) = (s for s in subjects() if s.name == "operators level1_9_argmax")
    assert not of(arg, rule(output_rules.RULES, "sign"))
    assert len(of(arg, rule(output_rules.RULES, "one integer off by one"))) == 1


def test_a_draw_is_fixed_by_its_seed_and_meets_all_kinds() -> None:
    few = [s for s in subjects() if s.name.endswith((" softmax", " view"))]
    one, two, other = draw(few, 5, 40), draw(few, 5, 40), draw(few, 6, 40)
    assert [m.id for m in one] == [m.id for m in two]
    assert [m.id for m in one] != [m.id for m in other]
    assert len({m.id for m in one}) == 40
    assert {m.rule.kind for m in one} == {"cpp", "python", "output"}


def test_frozen_kernels_give_the_same_mutants() -> None:
    drawn = "".join(mutant.id for mutant in draw(subjects(), 1, 1000))
    assert hashlib.sha256(drawn.encode()).hexdigest()[:12] == "994c41b4ff91"


def test_a_draw_ends_when_there_are_no_more() -> None:
    few = [s for s in subjects() if s.name == "operators scalar"]
    every = draw(few, 1, 10_000)
    assert len({m.id for m in every}) == len(every) < 10_000
    assert {m.id for m in every} == {m.id for r in RULES for m in of(few[0], r)}


def test_wilson_interval() -> None:
    assert wilson(50, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.thorough
def test_evidence_of_a_wrong_mutant_and_of_an_equivalent_one() -> None:
    (view,) = (s for s in subjects() if s.name == "operators view")
    rounded = next(m for m in of(view, rule(output_rules.RULES, "through fp16")))
    wrong = gather(rounded)
    assert wrong.draws == FRESH + VARIED + len(ADVERSARIAL)
    assert {"fresh 0", "varied 0"} <= set(wrong.refused) <= set(wrong.differing)
    assert wrong.error and wrong.error_of_right and wrong.error > 100 * wrong.error_of_right
    same = gather(replace(rounded, edit=Edit(0, 0, "# As it was.\n")))
    assert same.differing == same.refused == ()
    assert same.error == same.error_of_right == wrong.error_of_right


def test_arguments_agree_with_their_evidence() -> None:
    for argument in read_arguments():
        # Who is no equivalent has been judged again.
        assert argument.equivalent == (not argument.usual), argument.id
        if argument.equivalent:
            assert "refused on" not in argument.evidence, argument.id
        if argument.kind == "same code":
            assert argument.evidence.startswith("libraries equal"), argument.id


CHANCE = {
    "no start",
    "not written",
    "not atomic",
    "no reduction over threads",
    "scratch shared by threads",
}
"""What such a program returns depends on what lay in memory, or on the other thread."""
SEED, MUTANTS = 3, 6
KERNELS = (
    "hand level1_4_softmax", "hand totals", "hand level1_6_layer_norm", "operators mask",
)  # fmt: skip
"""Of many families."""


@pytest.mark.slow
def test_wrong_kernels_are_refused(tmp_path: Path) -> None:
    kernels = [s for s in subjects() if s.name in KERNELS]
    assert len(kernels) == len(KERNELS)
    out = tmp_path / "mutation.jsonl"
    run(kernels, SEED, MUTANTS, out)
    records = list(read(out))
    assert all(r.status == "correct" for r in records if r.kind is None)
    judged = [r for r in records if r.kind and r.built and r.rule not in CHANCE]
    assert len(judged) >= MUTANTS - 3
    argued = {a.id for a in read_arguments()}
    passed = [r for r in judged if not r.killed and r.id not in argued]
    assert [f"{r.id} {r.subject}: {r.rule}: {r.shown}" for r in passed] == []
    # What was judged is not judged again.
    run(kernels, SEED, MUTANTS, out)
    assert list(read(out)) == records
