"""What keeps large tasks within memory and time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from evaluator.evaluation import Status
from evaluator.judge.blockwise import close, finite, same, same_bytes
from evaluator.judge.correctness.comparison import compare
from evaluator.judge.operator_mode import tensors_in
from evaluator.judge.problem.footprint import footprint_of
from evaluator.judge.problem.problem_file import ProblemFile
from evaluator.settings import Precision
from evaluator.worker.initial_values import repeated_initial_values
from problems.loader import load_suite
from problems.sizes import SizeClass
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS
from tests.task import task

ELEMENTWISE = task(
    """
    y = self.linear(x)
    return torch.sigmoid(y) * y
    """,
    init="self.linear = torch.nn.Linear(features, 2 * features, bias=False)",
    sizes={"features": "1024"},
    x="torch.rand(ROWS, 1024)",
)


def test_the_footprint_of_a_task_is_what_its_tensors_take() -> None:
    found = footprint_of(ELEMENTWISE.replace("ROWS", "2**16"), torch.float32)
    assert found.inputs == 2**28
    assert found.weights == 2**23
    assert found.outputs == 2**29
    # The product and its sigmoid are alive while they are multiplied.
    assert found.forward == 3 * 2**29
    assert found.needed_on(torch.device("cuda")) > found.inputs + 2 * found.worker


FOOTPRINTS = """
import json, sys, torch
from evaluator.judge.problem.footprint import footprint_of
from problems.loader import load_suite
from problems.sizes import SizeClass
found = {}
for problem in load_suite():
    if problem.id == "level1_21_embedding":  # filling its table needs the compiler
        imported = "torch._dynamo" in sys.modules
    footprint = footprint_of(problem.reference(SizeClass.CPU), torch.float32)
    found[problem.id] = [footprint.inputs, footprint.weights]
print(json.dumps([found, imported]))
"""


def test_the_footprints_of_small_tasks_are_right_and_import_no_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", FOOTPRINTS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, imported = json.loads(done.stdout)
    assert not imported
    assert list(found).index("level1_21_embedding") > 15
    for problem in load_suite():
        file = ProblemFile(problem.reference(SizeClass.CPU))
        module = file.module.Model(*file.initial_arguments())
        weights = [*module.parameters(), *module.buffers()]
        inputs = file.inputs(torch.device("cpu"), torch.float32)
        sizes = [sum(t.nbytes for t in tensors) for tensors in (tensors_in(inputs), weights)]
        assert found[problem.id] == sizes, problem.id


def test_a_task_that_does_not_fit_the_machine_is_told_with_how_much_it_needs(evaluate) -> None:
    """4 TiB of inputs, which nobody may try to make."""
    from evaluator.errors import DeviceError

    with pytest.raises(
        DeviceError, match=r"needs about \d{5,}\.\d GiB to be judged, and [\d.]+ of"
    ):
        evaluate(HONEST, ELEMENTWISE.replace("ROWS", "2**30"))
    # The judge goes on.
    assert evaluate(HONEST).status is Status.CORRECT


def test_a_task_that_grows_beyond_memory_from_small_inputs_is_no_crash(evaluate) -> None:
    from evaluator.errors import DeviceError

    reference = ELEMENTWISE.replace("ROWS", "16").replace(
        "y = self.linear(x)", "y = self.linear(x).repeat(2**27, 1)"
    )
    with pytest.raises(DeviceError, match="to be judged"):
        evaluate(HONEST, reference)
    assert evaluate(HONEST).status is Status.CORRECT


def test_an_error_of_ours_ends_one_evaluation_and_not_the_judge(
    executor, evaluate, monkeypatch
) -> None:
    """A reference whose outputs have no storage, of which no rule knows."""
    from evaluator.errors import UnknownFailureError

    assert evaluate(HONEST).status is Status.CORRECT
    before = executor.judge_pids
    odd = ELEMENTWISE.replace("ROWS", "4").replace(
        "return torch.sigmoid(y) * y", "return y.to_sparse()"
    )
    with pytest.raises(UnknownFailureError):
        evaluate(odd.replace("class Model(", "class ModelNew("), odd)
    assert evaluate(HONEST).status is Status.CORRECT
    assert executor.judge_pids == before


def test_a_shortage_is_met_by_judging_once_more_without_other_problems(evaluate, tmp_path) -> None:
    """The reference runs short where the test says so, which only the judge can see."""
    from evaluator.errors import DeviceError

    short = tmp_path / "short"
    reference = SCALE_AND_BIAS.replace(
        "    def forward(self, x):\n",
        "    def forward(self, x):\n"
        "        if os.path.exists(SHORT):\n"
        "            if open(SHORT).read() == 'once':\n"
        "                os.unlink(SHORT)\n"
        "            raise torch.OutOfMemoryError('Tried to allocate 2.00 GiB')\n",
    ).replace("import torch\n", f"import os\nimport torch\nSHORT = {str(short)!r}\n", 1)
    assert evaluate(HONEST).status is Status.CORRECT
    assert evaluate(HONEST, reference).status is Status.CORRECT
    short.write_text("once")
    assert evaluate(HONEST, reference).status is Status.CORRECT
    assert not short.exists()
    short.write_text("always")
    with pytest.raises(DeviceError, match=r"to be judged.*had taken, 2\.00 GiB more"):
        evaluate(HONEST, reference)


def test_large_initial_values_are_repeated_and_small_ones_are_pytorchs() -> None:
    def weights(size: int) -> torch.Tensor:
        torch.manual_seed(42)
        return torch.nn.Linear(size, size).weight.detach()

    plain = weights(256)
    with repeated_initial_values():
        assert torch.equal(weights(256), plain)
        large = weights(2304)
        assert torch.equal(weights(2304), large)
    assert abs(float(large.std()) * 2304**0.5 * 3**0.5 - 1.0) < 0.01
    assert len(large.unique()) > 2**19
    assert not torch.equal(weights(2304), large)


def test_blocks_compare_as_the_whole_does() -> None:
    one = torch.randn(1000, 77)
    one[3, 5] = torch.nan
    other = one.clone()
    assert same(one, other) and same_bytes(one, other) and close(one, other, rtol=0, atol=0)
    other[-1, -1] += 1e-3
    assert not same(one, other) and not same_bytes(one, other)
    assert close(one, other, rtol=0, atol=1e-2) and not close(one, other, rtol=0, atol=1e-4)
    assert not same(one, one.double())


def test_one_element_that_is_not_finite_shows_in_any_block(monkeypatch) -> None:
    monkeypatch.setattr("evaluator.judge.blockwise._BLOCK", 64)
    values = torch.randn(10, 100)
    assert finite(values) and finite(torch.zeros(0)) and finite(torch.arange(3))
    for bad in (torch.nan, torch.inf, -torch.inf):
        for place in (0, 500, 999):
            spoilt = values.clone()
            spoilt.view(-1)[place] = bad
            assert not finite(spoilt)


@pytest.mark.thorough
@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16])
def test_what_passes_beside_the_reference_alone_passes_in_fp64(precision: Precision) -> None:
    """Errors of a growing size: the rule without fp64 gives way first."""
    half = precision is Precision.BF16
    dtype = torch.bfloat16 if half else torch.float32
    torch.manual_seed(0)
    exact = torch.randn(300, 200, dtype=torch.float64)
    unit = torch.finfo(dtype).eps
    noise = torch.randn_like(exact) * exact.abs()
    off = torch.zeros_like(exact) if half else unit * torch.randn_like(exact) * exact.abs()
    expected = (exact + off).to(dtype)
    seen = set()
    for step in range(-60, 90):
        actual = (exact + unit * 2.0 ** (step / 10) * noise).to(dtype)
        in_fp64 = compare([actual], [expected], [exact], [], precision, accumulation=1)
        alone = compare(
            *([actual], [expected], None, [], precision),
            accumulation=1,
            assumed_errors=in_fp64.reference_errors,
            describing=False,
        )
        assert in_fp64.ok or not alone.ok
        seen.add((in_fp64.ok, alone.ok))
    assert seen >= {(True, True), (False, False)}


def test_peak_memory_of_both_sides_is_in_the_record(evaluate) -> None:
    hungry = HONEST.replace(
        "return torch.relu", "x = x + torch.zeros(2**26).sum()\n        return torch.relu"
    )
    plain, more = evaluate(HONEST).memory, evaluate(hungry).memory
    assert plain.candidate_bytes > 0 and plain.baseline_bytes > 0
    assert more.candidate_bytes - plain.candidate_bytes > 2**27
    assert plain.judge_bytes is None
