"""The whole judge on real processes: what is right passes, what is wrong fails for its reason."""

from __future__ import annotations

import pytest

from evaluator.evaluation import Evaluation, Status
from evaluator.metrics import sol_score
from evaluator.settings import BaselineName
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS, forward
from tests.task import as_candidate, task


def was_timed(evaluation: Evaluation) -> bool:
    """Whether blocks of calls were made beside the baseline: what was seen then is reported."""
    return any(name.startswith("timed_") for name in evaluation.conditions)


def test_an_honest_copy_is_correct_and_about_as_fast(evaluate):
    evaluation = evaluate(HONEST, timing_seconds=1.0)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.weights == "named"
    assert evaluation.correctness.calls_judged >= 3
    assert evaluation.correctness.reference == "fp64"
    assert evaluation.correctness.error_ratio < evaluation.correctness.error_ratio_limit
    timing = evaluation.timing
    assert timing.speedup_low <= timing.speedup <= timing.speedup_high
    assert timing.latency_low_us <= timing.latency_us <= timing.latency_high_us
    assert timing.baselines[BaselineName.EAGER].pairs >= 6
    eager_us = timing.baselines[BaselineName.EAGER].latency_us
    assert timing.sol_score == sol_score(timing.latency_us, eager_us, timing.bound_us)
    assert len(set(evaluation.seeds)) == len(evaluation.seeds) >= 3
    assert {"no_new_privs", "rlimits", "clean_environment"} <= set(evaluation.isolation)
    assert evaluation.device and evaluation.conditions["threads"] >= 1
    assert was_timed(evaluation)


@pytest.mark.parametrize(
    ("body", "pattern"),
    [
        ("return torch.relu(x * self.scale) * 2.0", None),
        ("return torch.relu(x * self.scale + self.bias)", "factor"),
        ("y = torch.relu(x * self.scale + self.bias) * 2.0\ny[-1] = 0\nreturn y", "boundary"),
    ],
)
def test_wrong_values_are_incorrect(evaluate, body, pattern):
    evaluation = evaluate(forward(body))
    assert evaluation.status is Status.INCORRECT
    assert evaluation.reason == "wrong_values"
    assert evaluation.correctness.calls_made == 1
    assert evaluation.correctness.mismatch.wrong > 0
    if pattern:
        assert pattern in evaluation.correctness.mismatch.patterns


@pytest.mark.parametrize(
    "view", ["x.new_empty(256, 4, 8, 512)[:, 2, 5]", "x.new_empty(256, 2 ** 21)[:, :512]"]
)
def test_a_view_into_a_much_larger_tensor_is_right(evaluate, view):
    """One that is spread over gigabytes is copied within the call."""
    right = "torch.relu(x * self.scale + self.bias) * 2.0"
    evaluation = evaluate(forward(f"view = {view}\nview.copy_({right})\nreturn view"))
    assert evaluation.status is Status.CORRECT, evaluation.message


@pytest.mark.parametrize("reference", ["y.conj()", "torch.conj_physical(y)", "y.conj().imag"])
@pytest.mark.parametrize("candidate", ["y.conj()", "torch.conj_physical(y)", "y"])
def test_a_conjugate_is_its_values_and_not_its_memory(evaluate, reference, candidate):
    part = ".imag" if reference.endswith("imag") else ""
    problem = task(f"y = x * x\nreturn {reference}", x="torch.randn(64, 64, dtype=torch.complex64)")
    source = as_candidate(problem.replace(reference, candidate + part))
    expected = Status.INCORRECT if candidate == "y" else Status.CORRECT
    evaluation = evaluate(source, problem, timing_seconds=0.05)
    assert evaluation.status is expected, evaluation.message


@pytest.mark.parametrize(
    ("source", "status", "reason"),
    [
        ("import torch\n", Status.RUNTIME_ERROR, "no_model_new"),
        ("class ModelNew(:\n", Status.RUNTIME_ERROR, "syntax_error"),
        ("import nothing_of_that_name  # and ModelNew\n", Status.RUNTIME_ERROR, "import_raised"),
        (forward("raise ValueError('oh dear')"), Status.RUNTIME_ERROR, "forward_raised"),
        (forward("import os\nos.abort()"), Status.RUNTIME_ERROR, "abort"),
        (forward("x.zero_()\nreturn x"), Status.INTEGRITY, "input_modified"),
        (forward("return torch.cat([x] * 20)"), Status.INCORRECT, "wrong_shape"),
        (forward("return x.double()"), Status.INCORRECT, "wrong_dtype"),
        (forward("return x[:1]"), Status.INCORRECT, "wrong_shape"),
        (forward("return x, x"), Status.INCORRECT, "wrong_count"),
    ],
)
def test_every_end_has_its_reason(evaluate, source, status, reason):
    evaluation = evaluate(source)
    assert (evaluation.status, evaluation.reason) == (status, reason), evaluation.message
    assert evaluation.timing is None and not was_timed(evaluation)


def test_the_message_quotes_the_candidates_own_line(evaluate):
    evaluation = evaluate(forward("y = x + 1\nraise ValueError('oh dear')"))
    assert "ValueError: oh dear" in evaluation.message
    assert "raise ValueError('oh dear')" in evaluation.detail
    assert "candidate.py" in evaluation.detail and "worker.py" not in evaluation.detail


def test_renamed_parameters_fit_by_order(evaluate):
    source = HONEST.replace("self.bias", "self.b").replace("self.scale", "self.s")
    evaluation = evaluate(source)
    assert (evaluation.status, evaluation.weights) == (Status.CORRECT, "ordered")


SEEDED = """
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.both = [torch.zeros(features), torch.ones(features)]

    def forward(self, x):
        return torch.relu(x * self.both[1] + self.both[0]) * 2.0
"""


MANY = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, shape, scale=None, *, names=("a",)):
        super().__init__()
        self.shape = shape

    def forward(self, x, index, factor, pair):
        values, where = torch.max(x * factor, dim=-1)
        return {"values": values, "where": where}, (x.index_select(0, index) + pair[0], pair[1] * 2)

def get_inputs():
    pair = (torch.randn(33), torch.randn(33).t())
    return [torch.randn(64, 33), torch.randint(0, 64, (17,)), 2.5, pair]

def get_init_inputs():
    return [torch.Size([64, 33])]
"""


def test_many_outputs_integers_scalars_and_nested_arguments(evaluate):
    evaluation = evaluate(MANY.replace("class Model(", "class ModelNew("), MANY)
    assert evaluation.status is Status.CORRECT, evaluation.message


def test_a_later_output_of_the_wrong_form_is_incorrect(evaluate):
    for change, reason in (("pair[1][1:] * 2", "wrong_shape"), ("pair[1].double()", "wrong_dtype")):
        source = MANY.replace("class Model(", "class ModelNew(").replace("pair[1] * 2", change)
        evaluation = evaluate(source, MANY)
        assert (evaluation.status, evaluation.reason) == (Status.INCORRECT, reason)
        assert evaluation.correctness.mismatch.output == 3


STRIDED = task("return x @ y", x="torch.randn(64, 48).t()", y="torch.randn(1, 32).expand(64, 32)")


def test_strides_reach_the_candidate(evaluate):
    source = STRIDED.replace("class Model(", "class ModelNew(").replace(
        "return x @ y",
        "assert x.stride() == (1, 48) and y.stride() == (0, 1)\n        return x @ y",
    )
    evaluation = evaluate(source, STRIDED)
    assert evaluation.status is Status.CORRECT, evaluation.message


STABLE = task(
    "return torch.sort(x, dim=1, stable=True)", x="torch.randint(0, 20, (64, 100)).float()"
)


def test_ties_may_be_in_another_order_unless_a_stable_sort_was_asked_for(evaluate):
    honest = as_candidate(STABLE)
    assert evaluate(honest, STABLE).status is Status.CORRECT
    turned = honest.replace(
        "return torch.sort(x, dim=1, stable=True)",
        "values, places = torch.sort(x.flip(1), dim=1, stable=True)\n"
        "        return values, 99 - places",
    )
    evaluation = evaluate(turned, STABLE)
    assert (evaluation.status, evaluation.reason) == (Status.INCORRECT, "wrong_values")
    any_order = STABLE.replace(", stable=True", "")
    assert evaluate(turned, any_order).status is Status.CORRECT


def test_a_problem_that_needs_the_hub_is_refused_as_a_problem(evaluate):
    from evaluator.errors import UnusableReferenceError

    loading = "import transformers\nmodel = transformers.AutoModel.from_pretrained('gpt2')\n"
    with pytest.raises(UnusableReferenceError, match="calls from_pretrained"):
        evaluate(HONEST, loading + SCALE_AND_BIAS)


def test_what_a_reference_does_to_its_input_is_an_output(evaluate):
    reference = SCALE_AND_BIAS.replace(
        "return torch.relu(", "x.mul_(0.5)\n        return torch.relu("
    )
    in_place = reference.split("ROWS,")[0].replace("class Model(", "class ModelNew(")
    assert evaluate(in_place, reference).status is Status.CORRECT
    evaluation = evaluate(in_place.replace("x.mul_(0.5)", "x = x * 0.5"), reference)
    assert evaluation.reason == "wrong_values", evaluation
    assert "input 0, as forward leaves it" in evaluation.message
    # There the outputs alone are compared.
    other = evaluate(
        in_place.replace("x.mul_(0.5)", "x = x * 0.5"), reference, protocol="kernelbench"
    )
    assert other.status is Status.CORRECT, other.message


def test_an_epsilon_beside_a_running_variance_is_seen(evaluate):
    reference = SCALE_AND_BIAS.replace(
        "self.bias =", "self.norm = nn.BatchNorm1d(features).eval()\n        self.bias ="
    ).replace("torch.relu(x", "torch.relu(self.norm(x)")
    candidate = reference.split("ROWS,")[0].replace("class Model(", "class ModelNew(")
    assert evaluate(candidate, reference).status is Status.CORRECT
    without = candidate.replace("BatchNorm1d(features)", "BatchNorm1d(features, eps=8e-6)")
    assert evaluate(without, reference).reason == "wrong_values"


def test_half_precision(evaluate):
    evaluation = evaluate(HONEST, precision="bf16")
    assert evaluation.status is Status.CORRECT, evaluation.message


def test_a_kernel_that_knows_only_the_shown_sizes_fails_at_hidden_ones(evaluate):
    other = SCALE_AND_BIAS.replace("256, 512", "3, 37")
    body = (
        "y = torch.relu(x * self.scale + self.bias) * 2.0\n"
        "return y if x.shape[0] == 256 else y.flip(0)"
    )
    evaluation = evaluate(forward(body), hidden=(other,))
    assert (evaluation.status, evaluation.reason) == (Status.INCORRECT, "wrong_values")
    assert "other sizes, inputs of shape (3, 37)" in evaluation.message
    assert not was_timed(evaluation)
    assert evaluate(forward(body)).status is Status.CORRECT


def test_an_honest_kernel_is_called_at_hidden_sizes_too(evaluate):
    hidden = tuple(SCALE_AND_BIAS.replace("256, 512", sizes) for sizes in ("3, 37", "1, 1"))
    evaluation = evaluate(HONEST, hidden=hidden)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.correctness.calls_made >= 9 + evaluation.timing.calls


PRODUCT = task("return torch.prod(x, dim=1)", x="torch.randn(64, 256) * 0.3")


@pytest.mark.thorough
def test_outputs_that_vanish_are_judged_and_the_record_says_so(evaluate):
    """Products of so many small numbers are nil in fp32 and not in fp64."""
    own = as_candidate(PRODUCT)
    evaluation = evaluate(own, reference=PRODUCT)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert "outputs are 0 all over" in evaluation.notes[0]
    assert not any("all over" in note for note in evaluate(HONEST).notes)
