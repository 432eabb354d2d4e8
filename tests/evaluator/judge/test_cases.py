"""A problem that lists the sizes that it is served at."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from agent.record.progress import best_of
from evaluator.audit_record import DeepAudit, Life, LifeTrial, SanitizerRun, Tool
from evaluator.errors import UnusableReferenceError
from evaluator.evaluation import (
    Backend,
    Candidate,
    CaseTiming,
    Evaluation,
    EvaluationRequest,
    Status,
    Verdict,
)
from evaluator.executor.local import LocalExecutor
from evaluator.judge.cases import checked_at_each, counted, judged_at_each, weighted
from evaluator.rival import CheckRequest, Rival
from evaluator.settings import BaselineName, Settings
from problems.case import Case
from problems.loader import load_problem
from tests.agent.made_records import turn
from tests.evaluator.made_evaluations import correct, timing
from tools.diagnosis.diagnose import explain

MODULE = """
import time
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        time.sleep(0.004)
        return x + 1.0
"""
SERVED = f"""{MODULE}
ROWS = 2
CASES = [
    {{"ROWS": 4, "weight": 1}},
    {{"ROWS": 12, "weight": 7}},
    {{"ROWS": 8, "weight": 2}},
]

def get_inputs():
    return [torch.rand(ROWS, 512)]

def get_init_inputs():
    return []
"""


def fast_at(*rows: int) -> str:
    """A kernel that is faster than the reference at these sizes, and slower at others."""
    module = MODULE.replace("class Model(", "class ModelNew(")
    return module.replace("0.004", f"0.0 if x.shape[0] in {rows} else 0.02")


@pytest.fixture
def served(executor: LocalExecutor, tmp_path: Path):
    def judged(kernel: str, problem: str = SERVED, **settings: object) -> Evaluation:
        file = tmp_path / "served.py"
        file.write_text(problem)
        asked = Settings.model_validate({"timing_seconds": 0.2, "audit": "never", **settings})
        candidate = Candidate(source=kernel, backend=Backend.CPP)
        found = EvaluationRequest.of(load_problem(str(file)), asked, candidate=candidate)
        return executor.evaluate(found)

    return judged


def test_each_case_is_timed_and_the_weighted_time_counts(served) -> None:
    evaluation = served(fast_at(12))
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert [(case.name, case.weight) for case in evaluation.cases] == [
        ("ROWS=12", 0.7),
        ("ROWS=8", 0.2),
        ("ROWS=4", 0.1),
    ]
    heavy, middle, light = (case.timing for case in evaluation.cases)
    assert max(middle.speedup, light.speedup) < heavy.speedup
    timing = evaluation.timing
    assert timing == weighted(evaluation.cases)
    assert min(middle.speedup, light.speedup) < timing.speedup < heavy.speedup
    assert str(timing.verdict) in evaluation.message
    assert len(set(evaluation.seeds)) == len(evaluation.seeds) >= 9


def test_pytorchs_times_are_weighted_too(tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(SERVED)
    problem, settings = load_problem(str(tmp_path / "served.py")), Settings(timed_cases=2)
    times = iter([30.0, 12.0])

    def check(each: CheckRequest) -> Rival:
        return Rival(eager_us=next(times), needed_bytes=len(each.hidden_references))

    found = checked_at_each(CheckRequest.of(problem, settings), check)
    assert found.eager_us == pytest.approx((7 * 30 + 2 * 12) / 9)
    assert found.compile_us is None and found.measured_at
    assert next(times, "all asked") == "all asked"


def test_few_of_the_sizes_that_are_not_timed_are_checked() -> None:
    cases = tuple(Case(sizes={"n": str(n)}, weight=1 / 9, reference=str(n)) for n in range(9))
    known = {"problem_id": "p", "reference": "0", "hidden_references": ("small",), "cases": cases}
    one = CheckRequest.model_validate({**known, "settings": Settings(timed_cases=2)})
    first, second = one.at_each_case()
    assert (first.reference, second.reference) == ("0", "1")
    assert first.hidden_references == ("small", "5", "8") and not second.hidden_references


def test_the_weighted_speedup_is_that_of_the_summed_times() -> None:
    # eager 800, 3000 and 600 us; the kernel 400, 3000 and 1200.
    made = [timing(2.0, 400.0), timing(1.0, 3000.0), timing(0.5, 1200.0)]
    cases = [
        CaseTiming(sizes={"n": str(n)}, weight=weight, timing=each)
        for n, (weight, each) in enumerate(zip((0.7, 0.2, 0.1), made, strict=True))
    ]
    found = weighted(cases)
    assert found.latency_us == pytest.approx(0.7 * 400 + 0.2 * 3000 + 0.1 * 1200)
    assert found.baselines[BaselineName.EAGER].latency_us == pytest.approx(560 + 600 + 60)
    assert found.speedup == pytest.approx(1220 / 1000)
    # Narrower than each, as the cases are measured apart.
    assert 1.22 * 0.99 < found.speedup_low < 1.22 < found.speedup_high < 1.22 * 1.01
    assert (found.verdict, found.calls) == (Verdict.FASTER, 240)
    assert weighted(cases[1:2]) == made[1]
    assert weighted([cases[0], cases[1].model_copy(update={"timing": None})]) == made[0]


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (timing(1.1), timing(1.0), Verdict.FASTER),
        (timing(1.0), timing(0.9), Verdict.SLOWER),
        (timing(1.0), timing(1.005), Verdict.SAME),
        (timing(1.03), timing(1.0), Verdict.UNCLEAR),
        (timing(1.5, low=0.0, high=math.inf), timing(1.0), Verdict.UNCLEAR),
        # Disturbed from outside: its interval says nothing.
        (timing(2.0, verdict=Verdict.UNCLEAR), timing(1.2), Verdict.UNCLEAR),
    ],
)
def test_the_verdict_over_cases(first, second, verdict) -> None:
    found = weighted([CaseTiming(sizes={}, weight=0.5, timing=t) for t in (first, second)])
    assert found.verdict is found.baselines[BaselineName.EAGER].verdict is verdict
    assert (found.speedup_low <= 1 <= found.speedup_high) or verdict is not Verdict.UNCLEAR


def test_what_a_task_counts_is_held_against_the_summed_time() -> None:
    counts = (2e9, 1e9, "float32")
    times = [timing(2.0, 1000.0), timing(1.0, 3000.0)]
    cases = [CaseTiming(sizes={}, weight=0.5, counts=counts, timing=each) for each in times]
    found = counted(cases, "NVIDIA H200")
    assert (found.gbps, found.tflops) == (pytest.approx(1000.0), pytest.approx(0.5))
    assert found.peak_share == pytest.approx(1000 / 4800)
    assert found.words.endswith("0.5 TFLOP/s by the task's own counts, 20.8 % of the peak")
    assert counted(cases, "a CPU").peak_share is None
    assert counted([cases[0], cases[1].model_copy(update={"counts": None})], "a CPU") is None


def test_weights_move_the_choice_of_the_best_kernel() -> None:
    kernels = [(timing(2.0), timing(0.5)), (timing(0.5), timing(2.0))]
    for weights, best in (((0.9, 0.1), 0), ((0.1, 0.9), 1)):
        judged = [
            [CaseTiming(sizes={}, weight=w, timing=t) for w, t in zip(weights, times, strict=True)]
            for times in kernels
        ]
        turns = [
            turn(n, evaluation=correct().model_copy(update={"timing": weighted(cases)}))
            for n, cases in enumerate(judged)
        ]
        assert best_of(turns) is turns[best]


def test_a_kernel_that_is_wrong_at_one_case_is_refused_with_its_name(served) -> None:
    wrong = fast_at(12, 8).replace("return x + 1.0", "return x + (x.shape[0] != 8)")
    for timed, case, words in ((None, "ROWS=8", ""), (1, "ROWS=12", "inputs of shape (8, ")):
        evaluation = served(wrong, timed_cases=timed)
        assert (evaluation.status, evaluation.case) == (Status.INCORRECT, case)
        assert words in evaluation.message
        assert evaluation.timing is None and evaluation.cases == ()


def test_the_audits_at_all_cases_are_told_as_one(tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(SERVED)
    problem = load_problem(str(tmp_path / "served.py"))
    kernel = Candidate(source=fast_at(12), backend=Backend.CPP)
    clean = SanitizerRun(tool=Tool.MEMCHECK, outcome="clean", calls=1)
    late = SanitizerRun(tool=Tool.RACECHECK, outcome="inconclusive", note="too late")
    broken = LifeTrial(life=Life.MODE, outcome="broken", note="it is wrong in eval()")
    first = DeepAudit(occasion="asked", sanitizers=(clean, late), life=(broken,), seconds=30.0)
    second = DeepAudit(occasion="asked", sanitizers=(clean,), seconds=10.0)
    audits = iter([((), first), ((first,), second), ((first, second), None)])

    def judge(_: EvaluationRequest, earlier: tuple[DeepAudit, ...]) -> Evaluation:
        expected, audit = next(audits)
        assert earlier == expected
        return correct().model_copy(update={"audit": audit})

    found = judged_at_each(EvaluationRequest.of(problem, Settings(), candidate=kernel), judge).audit
    assert (found.properties, found.seconds) == (("it is wrong in eval()",), 40.0)
    told = [(run.calls, run.note) for run in found.sanitizers]
    assert told == [(2, "(at ROWS=12; ROWS=8)"), (0, "too late (at ROWS=12)")]


SCALED = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(64))

    def forward(self, x):
        return x * self.scale{kernel}

def get_inputs():
    return [torch.rand(8, 64)]

def get_init_inputs():
    return []
"""


def test_a_kernel_must_be_right_with_the_weights_beside_the_problem(served, tmp_path) -> None:
    problem = SCALED.format(kernel="")
    right, wrong = (
        SCALED.format(kernel=tail).replace("class Model(", "class ModelNew(")
        for tail in ("", ".clamp(max=100.0)")
    )
    assert served(wrong, problem).status is Status.CORRECT
    before = load_problem(str(tmp_path / "served.py"))
    save_file({"scale": torch.linspace(0.0, 1e4, 64)}, tmp_path / "served.safetensors")
    evaluation = served(wrong, problem)
    assert evaluation.status is Status.INCORRECT
    assert evaluation.message.endswith("(with the weights of served.safetensors)")
    assert explain(evaluation, "").startswith("Right with random weights, and wrong with trained")
    assert served(right, problem).status is Status.CORRECT
    # Another file makes another problem of it: a run does not go on with its verdicts.
    assert load_problem(str(tmp_path / "served.py")).hash != before.hash
    save_file({"scales": torch.ones(3)}, tmp_path / "served.safetensors")
    with pytest.raises(UnusableReferenceError, match=r"served.safetensors do not fit .*scales"):
        served(right, problem)
