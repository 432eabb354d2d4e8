"""Kernels whose speed is known: what the command measures, counts and prints."""

from __future__ import annotations

import pytest

from evaluator.evaluation import Verdict
from experiments.bench.known_ratios import Run, at_most, table
from tests.command import command


def run(true_ratio: float, verdict: Verdict, speedup: float = 1.0) -> Run:
    return Run(
        device="made up",
        true_ratio=true_ratio,
        verdict=verdict,
        speedup=speedup,
        speedup_low=speedup - 0.01,
        speedup_high=speedup + 0.01,
        pairs=30,
        disturbed_blocks=0,
        stopped="precise",
    )


@pytest.mark.parametrize(
    ("ratio", "verdict", "right"),
    [
        (1.0, Verdict.SAME, True),
        (1.0, Verdict.FASTER, False),
        (1.02, Verdict.FASTER, True),
        (1.02, Verdict.SAME, False),
        (0.98, Verdict.SLOWER, True),
        (0.98, Verdict.FASTER, False),
        (0.98, Verdict.UNCLEAR, None),
    ],
)
def test_a_verdict_is_right_wrong_or_withheld(ratio, verdict, right):
    assert run(ratio, verdict).right is right


def test_the_bound_on_the_share_of_wrong_verdicts():
    """None of n: at most 1 - 0.05 ** (1 / n)."""
    assert at_most(0, 100) == pytest.approx(1 - 0.05 ** (1 / 100), abs=1e-6)
    assert at_most(1, 100) == pytest.approx(0.04656, abs=1e-4)
    assert at_most(3, 3) == 1.0


def test_the_table_counts_each_ratio():
    runs = [run(1.0, Verdict.SAME)] * 3 + [run(1.0, Verdict.FASTER, 1.05)]
    rows = table([*runs, run(1.05, Verdict.FASTER, 1.05)]).splitlines()
    assert rows[2].startswith("| 1.000 | 4 | 1 | 3 | 0 | 0 | 1 |")
    assert "| 75 % |" in rows[2]
    assert rows[3].startswith("| 1.050 | 1 | 1 | 0 | 0 | 0 | 0 |")


@pytest.mark.slow
def test_the_command_measures_appends_and_prints_a_table(tmp_path):
    out = tmp_path / "runs.jsonl"
    words = ("--device", "cpu", "--runs", "0", "--equal", "1", "--seconds", "0.1")
    for count in (1, 2):
        done = command("experiments.bench.known_ratios", "--out", out, *words)
        assert done.returncode == 0, done.stderr
        assert f"| 1.000 | {count} |" in done.stdout
    measured = Run.model_validate_json(out.read_text().splitlines()[0])
    assert 0.2 < measured.speedup < 5
    assert measured.pairs >= 9
