"""KernelBench's protocol: its verdict, and our own checks as findings beside it."""

from __future__ import annotations

import pytest

from evaluator.evaluation import Status
from tests.evaluator.judge.test_judge import SEEDED
from tests.evaluator.made_requests import HONEST, forward
from tests.task import task


def test_under_kernelbenchs_protocol_both_sides_are_as_the_public_seed_makes_them(evaluate):
    assert evaluate(SEEDED, protocol="kernelbench").status is Status.CORRECT
    evaluation = evaluate(HONEST, protocol="kernelbench")
    assert (evaluation.status, evaluation.weights) == (Status.CORRECT, "seeded")


def test_under_kernelbenchs_protocol_our_own_checks_are_findings(evaluate):
    body = "x *= 2.0\nreturn torch.relu(x * self.scale + 2.0 * self.bias)"
    assert evaluate(forward(body)).reason == "input_modified"
    evaluation = evaluate(forward(body), protocol="kernelbench")
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert [finding.partition(":")[0] for finding in evaluation.findings] == ["input_modified"]
    assert not evaluate(HONEST, protocol="kernelbench").findings


LAZY = """
class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            args = [each.work() if isinstance(each, Lazy) else each for each in args]
            return function(*args, **(kwargs or {}))
"""


LATE = """
import threading, time
z = torch.relu(x * self.scale + self.bias) * 2.0
def late(end=time.perf_counter() + 0.3):
    while time.perf_counter() < end:
        pass
    z.mul_(1.01)
threading.Thread(target=late).start()
return z
"""


def test_late_work_is_a_finding_under_kernelbenchs_protocol(evaluate):
    late, reasons = forward(LATE.strip()), {"output_changed", "never_rests"}
    assert evaluate(late).reason in reasons
    evaluation = evaluate(late, protocol="kernelbench")
    assert evaluation.status is Status.CORRECT, evaluation
    found = {finding.partition(":")[0] for finding in evaluation.findings}
    # On a busy machine what goes on late makes the next call late to get ready.
    assert found and found <= reasons | {"work_before_start"}


def test_a_lazy_result_is_a_finding_under_kernelbenchs_protocol(evaluate):
    body = "y = torch.empty(0).as_subclass(Lazy)\ny.work = lambda: {}\nreturn y"
    right = "torch.relu(x * self.scale + self.bias) * 2.0"
    lazy = forward(body.format(right), "import torch\n" + LAZY)
    assert evaluate(lazy).reason == "tensor_subclass"
    evaluation = evaluate(lazy, protocol="kernelbench")
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert [finding.partition(":")[0] for finding in evaluation.findings] == ["tensor_subclass"]
    wrong = forward(body.format("x * 0.5"), "import torch\n" + LAZY)
    assert evaluate(wrong, protocol="kernelbench").reason == "wrong_values"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        # KernelBench's inputs lie where those of the trial before lay.
        (
            "if not hasattr(self, 'kept'):\n    self.kept = x\n"
            "return torch.relu(self.kept * self.scale + self.bias) * 2.0",
            "kept_address",
        ),
        # Wrong in a timed call.
        (
            "self.calls = getattr(self, 'calls', 0) + 1\n"
            "y = torch.relu(x * self.scale + self.bias) * 2.0\n"
            "return y if self.calls < 9 else y * 1.5",
            "wrong_later",
        ),
    ],
)
def test_what_kernelbench_would_not_see_is_a_finding_there(evaluate, body, found):
    assert evaluate(forward(body)).reason == "wrong_values"
    evaluation = evaluate(forward(body), protocol="kernelbench")
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert [finding.partition(":")[0] for finding in evaluation.findings] == [found]


FLAGS = task(
    "return x * self.weight * (2.0 if torch.backends.cudnn.benchmark else 1.0)",
    init="self.weight = nn.Parameter(torch.ones(8))",
    x="torch.randn(16, 8)",
)


def test_under_kernelbenchs_protocol_the_reference_has_the_flags_that_the_candidate_sets(evaluate):
    switched = "super().__init__()\n        torch.backends.cudnn.benchmark = True"
    source = FLAGS.replace("Model(", "ModelNew(").replace("super().__init__()", switched)
    assert evaluate(source, FLAGS).reason == "wrong_values"
    assert evaluate(source, FLAGS, protocol="kernelbench").status is Status.CORRECT


def test_kernelbenchs_protocol_moves_a_module_to_the_tasks_dtype_before_each_call(evaluate):
    """What a constructor makes of half precision is undone there."""
    half = FLAGS.replace("Model(", "ModelNew(").replace("torch.ones(8)", "torch.ones(8).half()")
    body = "assert self.weight.dtype is torch.half\n        return x * self.weight.float()"
    source = half.replace(half[half.index("return x *") : half.index("\n\ndef get_inputs")], body)
    evaluation = evaluate(source, FLAGS, protocol="kernelbench")
    assert (evaluation.status, evaluation.reason) == (Status.RUNTIME_ERROR, "forward_raised")
    undone = source.replace("torch.half\n", "torch.float\n")
    assert evaluate(undone, FLAGS, protocol="kernelbench").status is Status.CORRECT


OF_ITS_PROCESS = task(
    """
    import os
    return x * (1 + 5e-3 * (os.getpid() * 0.618 % 1))
    """,
    x="torch.randn(64, 64)",
)


def test_the_reference_runs_in_the_same_process_there(evaluate):
    """Both sides get what a library chooses for a process, as with cuDNN's algorithms."""
    source = OF_ITS_PROCESS.replace("Model(", "ModelNew(")
    assert evaluate(source, OF_ITS_PROCESS).status is Status.INCORRECT
    evaluation = evaluate(source, OF_ITS_PROCESS, protocol="kernelbench")
    assert evaluation.status is Status.CORRECT, evaluation.message


INDICES = task("return x.argmax(dim=1)", x="torch.randn(64, 2000)")


def test_a_reference_that_is_off_by_a_few_indices_is_not_believed(evaluate):
    head = "import torch\nreal = torch.Tensor.argmax\n"
    patch = "def off(x, dim):\n    i = real(x, dim=dim)\n    return i - 3 * (i > 400)\n\n"
    patch += "torch.Tensor.argmax = off\n"
    source = head + patch + INDICES.replace("class Model(", "class ModelNew(")
    assert evaluate(source, INDICES, protocol="kernelbench").reason == "wrong_values"


def test_small_values_are_no_excuse_for_a_changed_reference(evaluate):
    softmax = INDICES.replace("x.argmax(dim=1)", "torch.softmax(x, dim=1)")
    head = "import torch\ntorch.softmax = lambda x, dim: torch.zeros_like(x)\n"
    source = head + softmax.replace("class Model(", "class ModelNew(")
    assert evaluate(source, softmax, protocol="kernelbench").reason == "wrong_values"


def test_what_the_reference_raises_beside_a_candidate_is_said_to_be_the_references(evaluate):
    broken = forward(
        "return (x * self.scale + self.bias).clamp(min=0) * 2.0",
        "import torch\ntorch.relu = None\n",
    )
    assert evaluate(broken).status is Status.CORRECT
    evaluation = evaluate(broken, protocol="kernelbench")
    assert evaluation.status is Status.RUNTIME_ERROR, evaluation
    assert "the reference, run beside the candidate, raised TypeError" in evaluation.message


def test_kernelbenchs_protocol_runs_a_source_that_nothing_can_read(evaluate):
    head = """
import torch

try:
    @torch.jit.script
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2.5
except OSError:
    def twice(x):
        return x * 2.0
"""
    candidate = forward("return twice(torch.relu(x * self.scale + self.bias))", head)
    assert evaluate(candidate).reason == "wrong_values"
    assert evaluate(candidate, protocol="kernelbench").status is Status.CORRECT


def test_a_traceback_shows_the_source_under_kernelbenchs_protocol(evaluate):
    evaluation = evaluate(forward("return x.no_such_thing"), protocol="kernelbench")
    assert "return x.no_such_thing" in evaluation.detail
