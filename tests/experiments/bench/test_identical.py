"""Identical code over several files: what is counted, and what is told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.command.command_line import serve
from evaluator.evaluation import Verdict
from experiments.bench.identical import app, markdown
from experiments.bench.tasks import CANNOT_BE_JUDGED, TaskRow


def row(problem: str, verdict: Verdict | None, half: float = 0.005) -> TaskRow:
    return TaskRow(
        problem=problem,
        status="correct" if verdict else CANNOT_BE_JUDGED,
        verdict=verdict,
        speedup=1.0,
        speedup_low=1.0 - half,
        speedup_high=1.0 + half,
        wall_s=4.0,
        verdict_s=1.0,
    )


def test_each_level_has_its_shares_and_their_bound():
    rows = [row("level1_1_a", Verdict.SAME)] * 58 + [row("level1_3_b", Verdict.FASTER)]
    rows += [row("level3_1_net", Verdict.UNCLEAR, 0.02), row("level3_3_net", None)]
    table = markdown([], rows)
    assert "| level1 | 59 | 59 | 1 | 7.8 % | 58 | 0 | 1.00 % | 4.0 | 4.0 |" in table
    assert "| level3 | 2 | 1 | 0 | 95.0 % | 0 | 1 | 4.00 % | 4.0 | 4.0 |" in table
    assert "* level1_3_b: faster" in table


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert serve(app, "identical", [str(tmp_path / "none.jsonl")]) == 2
    assert "no such file" in capsys.readouterr().err
