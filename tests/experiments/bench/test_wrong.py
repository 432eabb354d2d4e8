"""Wrong versions, each kind before a real judge."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from experiments.bench.suites.result_lines import ResultLines
from experiments.bench.suites.spoiler import SPOILERS, wrong_version
from experiments.bench.suites.suite_run import suite_run
from experiments.bench.suites.wrong_candidate import RIGHT_CALLS, Kind
from experiments.bench.wrong import Outcome, WrongRow, judge_wrong, markdown
from tests.experiments.bench.test_tasks import suite


@pytest.mark.slow
def test_every_kind_is_refused_and_none_is_judged_twice(tmp_path: Path):
    folder = suite(tmp_path / "suite", good="return torch.relu(self.linear(x)) * 2 + 1")
    run, _ = suite_run({"suite": folder, "device": "cpu", "timing_seconds": 0.2})
    out = tmp_path / "wrong.jsonl"
    judge_wrong(run, ResultLines(out, WrongRow), 3)
    first = ResultLines(out, WrongRow).rows
    assert len(first) == 3

    lines = ResultLines(out, WrongRow)
    judge_wrong(run, lines, len(Kind))
    assert lines.rows[:3] == first
    rows = {row.kind: row for row in lines.rows}
    assert len(lines.rows) == len(rows) == len(Kind)
    assert {row.outcome for row in rows.values()} == {Outcome.REFUSED}, markdown((), lines.rows)
    assert all(row.reason == "wrong_values" for row in rows.values())
    assert rows[Kind.LATE].calls_judged > RIGHT_CALLS
    assert rows[Kind.MISSING_TERM].calls_judged == 2
    times = rows[Kind.THREE_TIMES].times_allowed
    # Each judgement draws other weights and inputs, which allow a larger or a smaller error.
    assert times is not None and 1 < times < 30


class _Several(torch.nn.Module):
    def forward(self, x):
        return {"count": torch.arange(3), "turned": [x.t(), x]}


@pytest.mark.parametrize("kind", SPOILERS)
def test_only_the_first_floating_output_is_spoiled_and_never_an_input(kind: str):
    x = torch.arange(1.0, 13.0).reshape(3, 4)
    kept = x.clone()
    outputs = wrong_version(kind, _Several, 0.5, 0)()(x)
    assert torch.equal(x, kept)
    assert torch.equal(outputs["count"], torch.arange(3))
    assert torch.equal(outputs["turned"][1], x)
    spoiled = outputs["turned"][0]
    wrong = (spoiled != x.t()).sum()
    assert wrong == {"element": 1, "tail": 12, "zeros": 12, "scale": 12}[kind]


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64])
def test_where_nothing_floats_one_element_changes(dtype: torch.dtype):
    class Whole(torch.nn.Module):
        def forward(self, x):
            return (x > 3).to(dtype)

    x = torch.arange(8.0)
    wrong = wrong_version("element", Whole, 0.9, 0)()(x) != Whole()(x)
    assert wrong.sum() == 1 and not wrong[0]


def test_the_right_calls_are_right():
    late = wrong_version("element", torch.nn.ReLU, 0.5, 2)()
    x = torch.arange(8.0)
    assert [torch.equal(late(x), x) for _ in range(4)] == [True, True, False, False]


@pytest.mark.parametrize(("kind", "digits"), [("half", 2.0**-11), ("tf32", 2.0**-11)])
def test_inputs_are_rounded_by_half_a_step_at_most(kind: str, digits: float):
    x = torch.rand(4000) + 1
    rounded = wrong_version(kind, torch.nn.Identity, 0.5, 0)()(x)
    off = (rounded - x).abs().max()
    assert 0.9 * digits < off <= digits


@pytest.mark.parametrize(
    ("module", "operators"),
    [
        (torch.nn.Conv1d(2, 3, 3), 1),
        (torch.nn.Linear(4, 4), 1),
        (torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(inplace=True)), 2),
        (torch.nn.BatchNorm1d(2), 1),
        (torch.nn.Flatten(), 0),
    ],
)
def test_an_operator_is_left_out_from_the_second_call_on(module: torch.nn.Module, operators: int):
    class Right(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x):
            return self.inner(x)

    x = 3 * torch.randn(6, 2, 4)
    with torch.no_grad():
        right = Right()(x)
        for number in range(operators):
            version = wrong_version("missing_term", Right, (number + 0.5) / operators, 0)()
            assert torch.equal(version(x), right)
            assert version._operators == operators
            assert not torch.allclose(version(x), right)
        if not operators:
            version = wrong_version("missing_term", Right, 0.5, 0)()
            assert torch.equal(version(x), right) and torch.equal(version(x), right)
