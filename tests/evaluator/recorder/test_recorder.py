"""A suite whose tasks are functions: recorded behind walls, then problems like any other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from evaluator.check import request_for
from evaluator.evaluation import Status
from evaluator.executor.local import LocalExecutor
from evaluator.judge.problem.problem_file import ProblemFile
from evaluator.recorder.program import RecordedCall, UnrecordableError, listed
from evaluator.recorder.recording import FunctionTask, Recording
from evaluator.settings import Settings
from problems.errors import UsageError
from problems.function import entry_names, with_model
from problems.loader import load_problem, load_suite
from problems.problem import Problem
from problems.sizes import SizeClass
from tests.foreign_checkout import FORMS, LINE, PICKED, SHIFTED, write_checkout

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_REFINERY_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield write_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def shifted(checkout: Path) -> Problem:
    return load_problem("Shifted", Path(f"kernelbench-x:{checkout}"))


@pytest.mark.thorough
def test_a_task_becomes_a_problem(shifted: Problem) -> None:
    assert (shifted.id, shifted.suite, shifted.category) == ("shifted", "kernelbench-x", "Math")
    shown = shifted.reference(SizeClass.GPU)
    assert "# Description: Moves numbers by an amount." in shown
    assert "# $\\nabla y = 1$\n" in shown and "# tensor([1., 1.])" in shown
    assert "test_results" not in shown and "triangular" not in shown
    assert "(1 of 5 sizes are left out: over 16 GiB of arguments)" in shown
    # 2^32 numbers were recorded without their memory; a search times no such size.
    assert [case.sizes for case in shifted.cases(SizeClass.GPU)] == [
        {"size_0": str(2**n)} for n in (12, 10, 8, 32)
    ]
    assert [case.weight for case in shifted.cases(SizeClass.CPU)] == [pytest.approx(1 / 3)] * 3


@pytest.mark.thorough
def test_later_calls_get_fresh_values_of_the_same_kind(shifted: Problem) -> None:
    hidden = [ProblemFile(text) for text in shifted.hidden_references(SizeClass.CPU)]
    # The loop's three calls are one.
    assert len(hidden) == 6
    drawn = [[problem.inputs(CPU, torch.float32) for _ in range(2)] for problem in hidden]
    (one, _), (lower, again), (definite, _), (half, _), (ordered, _), (written, _) = drawn
    assert one[0].shape == (2,) and one[0][0] > 0 > one[0][1]
    assert torch.equal(lower[0], lower[0].tril()) and not torch.equal(lower[0], again[0])
    assert lower[1:] == [2.0]
    assert definite[0].dtype is torch.float64 and definite[1:] == [1.0, 0.5]
    assert torch.linalg.eigvalsh(definite[0]).min() >= 0.99
    assert half[0].dtype is torch.float16 and half[0].shape == (3, 7)
    assert torch.equal(ordered[0], ordered[0].sort().values) and ordered[1:] == [3.0]
    assert written[0].tolist() == [0.0, 2.0, 2.0, 0.0]


@pytest.mark.thorough
def test_what_cannot_be_judged_is_one_line_and_the_others_go_on(
    checkout: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    suite = Path(f"kernelbench-x:{checkout}")
    assert [problem.id for problem in load_suite(suite)] == ["picked", "shifted"]
    said = [line for line in capfd.readouterr().err.splitlines() if "cannot be judged" in line]
    reasons = {line.split()[1]: line for line in said}
    assert reasons.keys() == {"bare", "large", "leaves", "forges", "optimiser"}
    assert "no line of 146 #" in reasons["bare"]
    assert "the test raised RuntimeError" in reasons["large"]
    assert "the test raised" in reasons["leaves"] and not (checkout / "outside").exists()
    assert "returns an optimiser" in reasons["optimiser"]
    assert "not one of ours" in reasons["forges"]
    with pytest.raises(UsageError, match="cannot be judged"):
        load_problem("bare", suite)
    with pytest.raises(UsageError, match="no checkout of KernelBench-X"):
        load_suite(Path(f"kernelbench-x:{checkout}/metrics"))


@pytest.mark.thorough
def test_one_that_never_ends_is_ended(tmp_path: Path) -> None:
    test = FORMS["never_ends"]
    task = FunctionTask(reference=SHIFTED, function="shifted", test=test, performance="")
    with pytest.raises(UnrecordableError, match="took over 15 s"):
        Recording(tmp_path, timeout_s=15.0).record(task)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("torch.load", {"tuple": ["/etc/passwd"]}),
        ("torch.Tensor.add", {"tuple": [{"tensor": [9]}]}),
        ("torch.zeros", {"tuple": [{"torch": "load('x')"}]}),
        ("torch.zeros", {"tuple": [{"float": "__import__('os')"}]}),
    ],
)
def test_a_record_is_not_believed(name: str, args: object) -> None:
    step = {"number": 0, "name": name, "args": args, "kwargs": {"dict": []}, "writes": []}
    call = RecordedCall.model_validate({"steps": [step]})
    with pytest.raises(UnrecordableError):
        listed(call, [{"tensor": [0]}])


@pytest.mark.thorough
def test_a_candidate_may_be_a_function(shifted: Problem) -> None:
    assert entry_names(shifted) == ("shifted", "kernel_function")
    body = SHIFTED.replace("def shifted", "def kernel_function")
    wrong = SHIFTED.replace("y * scale", "y.float() * scale")
    low = SHIFTED.replace("x + by", "(x.float() + by).to(x.dtype)")
    tested = f"{SHIFTED}{LINE}\nraise SystemExit\n"
    settings = Settings(timing_seconds=0.05, audit="never")
    found = []
    with LocalExecutor("cpu") as executor:
        for source in (SHIFTED, body, tested, wrong, low):
            found.append(executor.evaluate(request_for(source, shifted, settings)))
    statuses = [evaluation.status for evaluation in found]
    assert statuses[:3] == [Status.CORRECT] * 3, found
    # Too low a precision shows where a test calls it in fp64.
    assert statuses[3:] == [Status.INCORRECT] * 2
    timing = found[0].timing
    assert timing is not None and timing.geometric_speedup is not None
    assert "of summed times, geometric mean" in found[0].message


@pytest.mark.thorough
def test_a_quantised_task_has_thresholds_and_shapes_may_depend_on_values(checkout: Path) -> None:
    picked = load_problem("picked", Path(f"kernelbench-x:{checkout}"))
    settings = Settings(timing_seconds=0.05, audit="never")
    with LocalExecutor("cpu") as executor:
        rough, wrong = (
            executor.evaluate(request_for(PICKED.replace("* 2", factor), picked, settings))
            for factor in ("* 2.05", "* 2.5")
        )
    assert rough.status is Status.CORRECT and wrong.status is Status.INCORRECT, (rough, wrong)
    assert rough.correctness is not None and rough.correctness.error_ratio is not None
    assert rough.correctness.thresholds == {"cosine_sim": 0.99, "l1_relative": 0.1, "rmse": 0.1}
    assert 0.2 < rough.correctness.error_ratio < 1


@pytest.mark.thorough
def test_only_a_function_gets_a_module(shifted: Problem) -> None:
    module = "class ModelNew:\n    pass\n"
    for source in (module, "def other(x):\n    return x\n", "def broken(:\n"):
        assert with_model(source, shifted) == source
    made = with_model("shifted = print\n", shifted)
    assert "class ModelNew" in made and with_model(made, shifted) == made
    assert ast.parse(made)
    plain = load_problem("1/1")
    assert with_model("def shifted(x):\n    return x\n", plain) == "def shifted(x):\n    return x\n"
