"""The same kernels measured again: what overlaps, what differs, what turned round."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluator.evaluation import Timing, Verdict
from experiments.bench.repeats import app, lines, read, repeats
from problems.errors import UsageError
from tests.evaluator.made_evaluations import timing as made_timing


def timing(speedup: float, half: float, verdict: Verdict, latency_us: float = 500.0) -> Timing:
    low, high = speedup * (1 - half), speedup * (1 + half)
    return made_timing(speedup, latency_us, low=low, high=high, verdict=verdict)


FIRST = {
    "a": timing(2.0, 0.01, Verdict.FASTER),
    "b": timing(1.1, 0.02, Verdict.FASTER),
    "c": timing(1.0, 0.01, Verdict.SAME, latency_us=50.0),
    "alone": timing(3.0, 0.01, Verdict.FASTER),
}
SECOND = {
    "a": timing(2.03, 0.01, Verdict.FASTER),
    "b": timing(0.9, 0.02, Verdict.SLOWER),
    "c": timing(1.05, 0.06, Verdict.UNCLEAR, latency_us=50.0),
}


def test_pairs_are_compared_by_kernel():
    both = {each.kernel: each for each in repeats(FIRST, SECOND)}
    assert set(both) == {"a", "b", "c"}
    assert [both[name].overlaps for name in "abc"] == [True, False, True]
    assert [both[name].turned for name in "abc"] == [False, True, False]
    assert [both[name].is_long for name in "abc"] == [True, True, False]
    assert both["a"].difference == pytest.approx(0.015)


def test_the_report_names_what_turned_round():
    text = "\n".join(lines({"monday": FIRST, "tuesday": SECOND}))
    assert "| monday, tuesday | 3 | 2 (66.7 %) | 11.9 % | 5 % | 2 | 1 |" in text
    assert "faster once and slower once: b (monday, tuesday)" in text
    assert "| monday | 4 | 2 % |" in text


def test_what_the_command_reads_is_what_check_prints(tmp_path: Path):
    rows = [
        {
            "kernel": name,
            "problem": "p",
            "status": "correct",
            "timing": each.model_dump(mode="json"),
        }
        for name, each in FIRST.items()
    ]
    rows.append({"kernel": "wrong", "status": "incorrect", "timing": None})
    rows.append({"kernel": "unjudged", "problem": "p", "error": "no room"})
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    for path in (one, other):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read(one) == FIRST
    result = CliRunner().invoke(app, [str(one), str(other)])
    assert "| one, other | 4 | 4 (100 %) | 0 % | 0 % | 0 | 0 |" in result.output


def test_another_file_is_a_mistake(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("nothing of the kind\n")
    with pytest.raises(UsageError, match=r"evaluator\.check's --json"):
        read(path)
    with pytest.raises(UsageError, match=r"missing\.jsonl: No such file"):
        read(tmp_path / "missing.jsonl")
