"""The candidates are what the catalogue says, and come to the verdicts that it says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.evaluation import Backend, Status
from evaluator.executor.local import LocalExecutor
from evaluator.settings import Settings
from experiments.bench.speed import catalogue as module
from experiments.bench.speed.catalogue import catalogue, runnable
from problems.errors import UsageError

QUICK = ("cpp/argmax_undeclared", "cpp/huber_wrong_branch")
CPP = catalogue([Backend.CPP])


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor("cpu") as running:
        yield running


def test_some_are_right_some_are_wrong_and_some_do_not_compile():
    for backend in (Backend.CPP, Backend.CUDA):
        expected = [candidate.expected for candidate in catalogue([backend])]
        assert {Status.CORRECT, Status.INCORRECT, Status.BUILD_ERROR} <= {*expected}
        assert expected.count(Status.CORRECT) > 1
    assert {c.expected for c in catalogue([Backend.TRITON])} == {Status.CORRECT, Status.INCORRECT}


def test_a_device_runs_what_it_can():
    assert runnable("cpu") == (Backend.CPP,)
    assert Backend.CUDA in runnable("cuda:0")


def test_a_file_that_does_not_say_what_it_is_is_refused(tmp_path, monkeypatch):
    (tmp_path / "cpp").mkdir()
    (tmp_path / "cpp" / "some.py").write_text("import torch\n")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    with pytest.raises(UsageError, match="must begin with"):
        catalogue([Backend.CPP])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "candidate",
    [c if c.name in QUICK else pytest.param(c, marks=pytest.mark.slow) for c in CPP],
    ids=lambda candidate: candidate.name,
)
def test_a_cpp_candidate_comes_to_its_verdict_on_the_light_path(candidate, executor):
    settings = Settings(timing_seconds=0.1, audit="never")
    evaluation = executor.evaluate(candidate.request(settings))
    assert evaluation.status is candidate.expected, evaluation.message + evaluation.detail
    assert evaluation.build is not None
    assert evaluation.build.headers == "light"
    assert evaluation.seconds.narrowing <= evaluation.seconds.timing <= evaluation.seconds.judge
