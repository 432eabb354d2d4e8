"""References that keep a state from call to call: both sides get the same calls."""

from __future__ import annotations

import pytest

from evaluator.evaluation import Status
from tests.task import as_candidate, task

STATEFUL = task(
    """
    self.state = torch.tanh(self.step(torch.cat((x, self.state.to(x.device)), 1)))
    return self.out(self.state)
    """,
    init="""
    self.state = torch.randn(4, hidden)
    self.step = nn.Linear(inputs + hidden, hidden)
    self.out = nn.Linear(hidden, inputs)
    """,
    sizes={"inputs": "24", "hidden": "40"},
    x="torch.randn(4, 24)",
)
OWN = as_candidate(STATEFUL)
PREPARED = OWN.replace(
    "self.step = nn.Linear(inputs + hidden, hidden)\n        self.out = nn.Linear(hidden, inputs)",
    "step, out = nn.Linear(inputs + hidden, hidden), nn.Linear(hidden, inputs)\n"
    "        kept = (step.weight, step.bias, out.weight, out.bias)\n"
    "        self.parts = [t.detach().clone() for t in kept]",
).replace(
    "self.state = torch.tanh(self.step(torch.cat((x, self.state.to(x.device)), 1)))\n"
    "        return self.out(self.state)",
    "a, b, c, d = self.parts\n"
    "        torch.tanh(x @ a[:, :24].T + self.state @ a[:, 24:].T + b, out=self.state)\n"
    "        return self.state @ c.T + d",
)


@pytest.mark.parametrize(("source", "weights"), [(OWN, "named"), (PREPARED, "seeded")])
def test_the_same_calls_lead_to_the_same_outputs(evaluate, source, weights):
    evaluation = evaluate(source, reference=STATEFUL, timing_seconds=0.5)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.weights == weights
    assert evaluation.correctness.reference == "fp64"
    assert evaluation.correctness.calls_judged > 8


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.state = torch.tanh", "state = torch.tanh"),
        ("self.state.to(x.device)", "self.state * 0"),
        ("torch.randn(4, hidden)", "torch.zeros(4, hidden)"),
    ],
)
def test_a_state_that_is_not_kept_is_wrong(evaluate, old, new):
    source = OWN.replace(old, new)
    if "state = torch.tanh" in new:
        source = source.replace("self.out(self.state)", "self.out(state)")
    evaluation = evaluate(source, reference=STATEFUL)
    assert (evaluation.status, evaluation.reason) == (Status.INCORRECT, "wrong_values")
    if new == "state = torch.tanh":
        assert evaluation.correctness.mismatch.patterns[0] == "state_not_kept"


IN_A_BUFFER = STATEFUL.replace(
    "self.state = torch.randn(4, hidden)", 'self.register_buffer("state", torch.randn(4, hidden))'
)
OWN_BUFFER = as_candidate(IN_A_BUFFER)


@pytest.mark.parametrize("source", [OWN_BUFFER, OWN], ids=["buffer", "plain attribute"])
def test_a_state_in_a_registered_buffer_is_one_too(evaluate, source):
    evaluation = evaluate(source, reference=IN_A_BUFFER)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.correctness.calls_judged > 8


def test_running_statistics_are_no_state(evaluate):
    normed = STATEFUL.replace("self.out =", "self.norm = nn.BatchNorm1d(40)\n        self.out =")
    normed = normed.replace("self.state.to(x.device)", "torch.ones(4, 40)")
    normed = normed.replace("self.out(self.state)", "self.out(self.norm(self.state))")
    source = as_candidate(normed)
    forgetful = source.replace("nn.BatchNorm1d(40)", "nn.BatchNorm1d(40, momentum=0.0)")
    for each in (source, forgetful):
        evaluation = evaluate(each, reference=normed)
        assert evaluation.status is Status.CORRECT, evaluation.message


def test_a_candidates_own_cache_is_no_state(evaluate):
    plain = STATEFUL.replace("self.state.to(x.device)", "torch.ones(4, 40)")
    source = as_candidate(plain)
    cached = source.replace(
        "return self.out(self.state)", "self.last = self.state\n        return self.out(self.last)"
    )
    assert evaluate(cached, reference=plain).status is Status.CORRECT
    stale = source.replace(
        "return self.out(self.state)",
        "last = getattr(self, 'last', self.state)\n        self.last = self.state\n"
        "        return self.out(last)",
    )
    evaluation = evaluate(stale, reference=plain)
    assert evaluation.correctness.mismatch.patterns[0] == "earlier_result"


def test_numbers_from_elsewhere_cannot_be_judged(evaluate):
    from evaluator.errors import UnusableReferenceError

    # Over many decades, or one pair in a hundred would be close by chance.
    source = STATEFUL.replace(
        "self.out(self.state)", "self.out(self.state) + 10 ** (int.from_bytes(os.urandom(3)) / 1e6)"
    )
    with pytest.raises(UnusableReferenceError, match="constructed anew"):
        evaluate(OWN, reference="import os\n" + source)
