"""Candidates whose constructors prepare their weights are right; those that ignore weights aren't.

Each is judged as a whole, by a real judge on real processes.
"""

from __future__ import annotations

import pytest

from evaluator.evaluation import Status
from evaluator.judge.explaining.explanation import Explanation
from tests.evaluator.made_requests import evaluation_request
from tests.task import as_candidate, task

_NAMED = """
self.linear = nn.Linear(features, features)
self.norm = nn.LayerNorm(features)
self.scale = nn.Parameter(torch.ones(1, features))
self.shift = nn.Parameter(torch.randn(features))
"""
_FUSED = """
y = F.linear(x, self.linear.weight, self.linear.bias)
return F.layer_norm(y, y.shape[1:], self.norm.weight, self.norm.bias) * self.scale + self.shift
"""


def problem(constructor: str, forward: str) -> str:
    """One whose module has these two bodies."""
    return task(forward, init=constructor, sizes={"features": "48"}, x="torch.randn(32, 48)")


def module(constructor: str, forward: str) -> str:
    """A candidate of these two bodies."""
    return as_candidate(problem(constructor, forward))


PROBLEM = problem(_NAMED, "return self.norm(self.linear(x) / 3.0 - 0.5) * self.scale + self.shift")
_FOLDING = """
with torch.no_grad():
    self.linear.weight.div_(3.0)
    self.linear.bias.div_(3.0).sub_(0.5)
"""
_MADE = """
linear, norm = nn.Linear(features, features), nn.LayerNorm(features)
scale, shift = nn.Parameter(torch.ones(1, features)), nn.Parameter(torch.randn(features))
"""
_FOLDED = """
self.w = nn.Parameter(linear.weight.data)
self.b = nn.Parameter(linear.bias.data)
with torch.no_grad():
    self.w.div_(3.0)
    self.b.div_(3.0).sub_(0.5)
self.g = nn.Parameter(norm.weight.data)
self.h = nn.Parameter(norm.bias.data)
"""
_OTHERS = """
self.s, self.t = scale, shift
"""
_RENAMED = """
y = F.linear(x, self.w, self.b)
return F.layer_norm(y, y.shape[1:], self.g, self.h) * self.s + self.t
"""
RIGHT = {
    "folds in place": (_NAMED + _FOLDING, _FUSED, "derived"),
    "folds under inference mode": (
        "with torch.inference_mode():\n"
        + "".join(f"    {line}\n" for line in (_NAMED + _FOLDING).strip().splitlines()),
        _FUSED,
        "derived",
    ),
    "folds a layer of its own under other names": (_MADE + _FOLDED + _OTHERS, _RENAMED, "seeded"),
    "folds under other names in the same order": (_MADE + _OTHERS + _FOLDED, _RENAMED, "seeded"),
    "shares one tensor among two names": (
        _NAMED + "self.same = self.scale",
        "return self.norm(self.linear(x) / 3.0 - 0.5) * self.same + self.shift",
        "named",
    ),
}
_IGNORING = "return F.layer_norm(self.linear(x) / 3.0 - 0.5, x.shape[1:]) + self.shift"
WRONG = {
    "ignores constant parameters": (_NAMED, _IGNORING),
    "ignores constant parameters that it touches": (
        f"{_NAMED}with torch.no_grad():\n    self.scale.mul_(1)\n    self.norm.weight.mul_(1)",
        _IGNORING,
    ),
    "has no constant parameters": (
        "self.linear = nn.Linear(features, features)\n"
        "self.shift = nn.Parameter(torch.randn(features))",
        _IGNORING,
    ),
    "ignores a random parameter": (
        _NAMED + _FOLDING,
        "y = self.linear(x)\n"
        "return F.layer_norm(y, y.shape[1:], self.norm.weight, self.norm.bias) * self.scale",
    ),
    "fills a constant parameter anew": (
        _NAMED + "self.scale.data.fill_(1.0)\nself.keep = torch.ones(1, features)",
        "return self.norm(self.linear(x) / 3.0 - 0.5) * self.keep + self.shift",
    ),
    "knows the public seed": (
        """
torch.manual_seed(42)
self.linear = nn.Linear(features, features)
self.norm = nn.LayerNorm(features)
self.t = torch.randn(features)
""",
        "return self.norm(self.linear(x) / 3.0 - 0.5) + self.t",
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_constructor_prepares_is_right(evaluate, name):
    constructor, forward, weights = RIGHT[name]
    evaluation = evaluate(module(constructor, forward), reference=PROBLEM)
    assert evaluation.status is Status.CORRECT, (evaluation.message, evaluation.detail)
    assert evaluation.weights == weights
    assert evaluation.correctness.error_ratio < evaluation.correctness.error_ratio_limit


@pytest.mark.thorough
def test_only_who_is_refused_is_explained(judge, monkeypatch):
    """To find out why values are wrong takes seconds."""
    explained: list[str] = []
    found = Explanation.of

    def counted(self, mismatch):
        explained.append(self.runner.fit)
        return found(self, mismatch)

    monkeypatch.setattr(Explanation, "of", counted)
    constructor, forward, _ = RIGHT["folds under other names in the same order"]
    for body, fits in ((forward, []), (f"{forward.rstrip()} + 1", ["seeded", "ordered"])):
        source = module(constructor, body)
        evaluation = judge.evaluate(evaluation_request(source, PROBLEM, timing_seconds=0.1))
        assert explained == fits, evaluation.message
    assert "judged twice" in evaluation.message


_UNDONE_LATE = """
self.calls += 1
y = F.linear(x, self.w, self.b)
is_undone = not torch.equal(self.w, self.folded)
if is_undone:
    y = y / 3.0 - 0.5
y = F.layer_norm(y, y.shape[1:], self.g, self.h) * self.s + self.t
"""


def test_what_copying_undoes_may_show_while_it_is_timed(evaluate):
    """Its first calls are right with copied weights, so the others decide which weights it gets."""
    constructor, _, _ = RIGHT["folds under other names in the same order"]
    constructor += "self.folded = self.w.detach().clone()\nself.calls = 0"
    right = f"{_UNDONE_LATE}return y + float(is_undone and self.calls > 3)"
    evaluation = evaluate(module(constructor, right), reference=PROBLEM)
    assert evaluation.status is Status.CORRECT, (evaluation.message, evaluation.detail)
    assert evaluation.weights == "seeded"

    wrong = f"{_UNDONE_LATE}return y + float(self.calls > 3)"
    evaluation = evaluate(module(constructor, wrong), reference=PROBLEM)
    assert (evaluation.status, evaluation.reason) == (Status.INCORRECT, "wrong_values")
    assert "judged twice" in evaluation.message


@pytest.mark.thorough
@pytest.mark.parametrize("name", WRONG)
def test_who_ignores_weights_is_refused(evaluate, name):
    evaluation = evaluate(module(*WRONG[name]), reference=PROBLEM)
    assert (evaluation.status, evaluation.reason) == (Status.INCORRECT, "wrong_values")


def test_what_follows_from_no_seed_must_be_registered(evaluate):
    """A ramp is the same under each seed, and would not be missed as constructed."""
    reference = PROBLEM.replace("torch.randn(features)", "torch.arange(features) / 7.0")
    body = "return self.norm(self.linear(x) / 3.0 - 0.5) * self.s + torch.arange(48) / 7.0"
    constructor = _NAMED.replace("self.shift", "del self.scale\nshift") + "self.s = 1.0"
    constructor = constructor.replace("torch.randn(features)", "torch.arange(features) / 7.0")
    evaluation = evaluate(module(constructor, body), reference=reference)
    assert (evaluation.status, evaluation.reason) == (Status.INTEGRITY, "weights_unmatched")
    assert "`shift`" in evaluation.message


@pytest.mark.thorough
def test_the_next_candidate_has_the_public_state_again(evaluate):
    """A module may keep a tensor that is no parameter: it must be as the public seed makes it."""
    reference = PROBLEM.replace(
        "self.scale = ", "self.table = torch.randn(features)\n        self.scale = "
    ).replace("self.linear(x)", "self.linear(x * self.table)")
    constructor = _NAMED.replace(
        "self.scale = ", "self.table = torch.randn(features)\nself.scale = "
    )
    plain = "return self.norm(self.linear(x * self.table) / 3.0 - 0.5) * self.scale + self.shift"
    for _ in range(2):
        renamed = (
            constructor.replace("self.linear", "self.first") + "self.first.bias.data.div_(3.0)"
        )
        prepared = plain.replace(
            "self.linear(x * self.table) / 3.0",
            "F.linear(x * self.table, self.first.weight / 3.0, self.first.bias)",
        )
        evaluation = evaluate(module(renamed, prepared), reference=reference)
        assert (evaluation.status, evaluation.weights) == (Status.CORRECT, "seeded")
        evaluation = evaluate(module(constructor, plain), reference=reference)
        assert (evaluation.status, evaluation.weights) == (Status.CORRECT, "named")


def test_a_parameter_that_is_constant_in_part_must_be_registered(evaluate):
    """Its ones would stay ones under each seed."""
    half = "torch.cat([torch.ones(24), torch.randn(24)])"
    reference = PROBLEM.replace("torch.randn(features)", half)
    constructor = _NAMED.replace("self.shift = nn.Parameter(torch.randn(features))", f"t = {half}")
    body = _IGNORING.replace("self.shift", "self.t")
    evaluation = evaluate(module(f"{constructor}self.t = t", body), reference=reference)
    assert (evaluation.status, evaluation.reason) == (Status.INTEGRITY, "weights_unmatched")
