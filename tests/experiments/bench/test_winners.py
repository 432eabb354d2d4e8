"""Winners measured again: both figures, and whether the interval of their ratio holds 1."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluator.evaluation import Timing, Verdict
from evaluator.hardware.devices import describe
from experiments.bench.winners import Again, Pair, Winner, app, lines
from problems.errors import UsageError
from tests.evaluator.made_evaluations import timing as made_timing
from tests.evaluator.made_requests import evaluation_request


def timing(speedup: float, half: float, verdict: Verdict) -> Timing:
    low, high = speedup * (1 - half), speedup * (1 + half)
    return made_timing(speedup, 500.0, low=low, high=high, verdict=verdict)


REQUEST = evaluation_request(timing_seconds=0.2, audit="never")
WINNER = Winner(
    run="a-run",
    request=REQUEST,
    found=2.2,
    confirmed=timing(2.0, 0.01, Verdict.FASTER),
    device="a CPU",
)


@pytest.mark.parametrize(("speedup", "half", "holds"), [(2.02, 0.01, True), (2.1, 0.01, False)])
def test_the_intervals_of_both_count(speedup, half, holds):
    pair = Pair(WINNER, timing(speedup, half, Verdict.FASTER))
    assert pair.ratio == pytest.approx(speedup / 2)
    assert pair.half_width == pytest.approx(2**0.5 * 0.01, rel=0.01)
    assert pair.holds is holds


def test_the_report_says_what_was_not_measured():
    other = WINNER.model_copy(update={"run": "another"})
    third = WINNER.model_copy(update={"run": "third"})
    agains = [
        Again(
            name=WINNER.name,
            timing=timing(1.9, 0.1, Verdict.FASTER),
            message="correct",
            device="a CPU",
        ),
        Again(name=other.name, timing=None, message="wrong values", device="a CPU"),
    ]
    told = "\n".join(lines([WINNER, other, third], agains))
    assert "| 2.2x | 2x [1.98, 2.02] | 1.9x [1.71, 2.09] | 0.950 | yes |" in told
    assert "not correct" in told and "not measured" in told
    assert "holds 1 for 1 of 1 kernels (100 %)" in told
    assert "again over confirmed: 0.950; of search over confirmed: 1.100" in told
    assert "differs from confirmed by 5.1 %" in told and "the intervals explain 5.1 %" in told


@pytest.mark.thorough
def test_a_kernel_is_judged_again_once(tmp_path: Path):
    file, out = tmp_path / "winners.jsonl", tmp_path / "again.jsonl"
    winner = WINNER.on("cuda:99").model_copy(update={"device": describe("cpu").name})
    file.write_text(winner.model_dump_json(exclude_defaults=True) + "\n")
    words = ["again", str(file), str(out), "--device", "cpu"]
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0 and "correct" in first.stdout, first.output
    written = out.read_text()
    assert CliRunner().invoke(app, words).stdout == ""
    assert out.read_text() == written
    told = CliRunner().invoke(app, ["report", str(file), str(out)]).stdout
    assert "of 1 kernels" in told


def test_another_model_of_cpu_measures_nothing(tmp_path: Path):
    file, out = tmp_path / "winners.jsonl", tmp_path / "again.jsonl"
    file.write_text(WINNER.model_dump_json(exclude_defaults=True) + "\n")
    told = CliRunner().invoke(app, ["again", str(file), str(out)]).exception
    assert isinstance(told, UsageError) and "was confirmed on a CPU; this is" in str(told)
    assert not out.exists()
