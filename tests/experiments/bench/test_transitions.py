"""What is said of a writer's rounds, judged: made-up rows and tasks in KernelBench-X's format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.bench import transitions
from experiments.bench.suites.result_lines import ResultLines
from experiments.bench.transitions import Transition, VerdictRow, markdown, outcome
from tests.command import command, refused
from tests.evaluator.judge.test_kernelbench_x_protocol import TASK

MODULE = "experiments.bench.transitions"
SLOW = TASK.partition("rows =")[0].replace("Model(", "ModelNew(")
FAST = SLOW.replace("torch.exp(x) * 2.0", "x.exp() * 2.0")
WRONG = FAST.replace("* 2.0", "* 3.0")
AT_TEST = FAST.replace("* 2.0", "* (2.0 if x.shape[0] < 60 else 3.0)")


def said(name: str, before: str, after: str, right: tuple[bool, bool]) -> str:
    sides = [{"exe_ok": each, "speedup": 1.0 + n if each else None} for n, each in enumerate(right)]
    codes = [f"{code}\n{'#' * 146}\nraise SystemExit('the test')\n" for code in (before, after)]
    row = {"task_id": f"Math/{name}.py", "transition": "round_0_to_round_1"}
    row |= dict(zip(("before", "after"), sides, strict=True))
    return json.dumps(row | dict(zip(("before_code", "after_code"), codes, strict=True))) + "\n"


@pytest.mark.slow
def test_each_side_is_judged_once_by_both_protocols(tmp_path: Path) -> None:
    suite, folder, out = (tmp_path / name for name in ("suite", "rows", "out.jsonl"))
    (suite / "level1").mkdir(parents=True)
    (suite / "level1" / "1_exp.py").write_text(TASK)
    folder.mkdir()
    (folder / "rescues.jsonl").write_text(
        said("exp", WRONG, AT_TEST, (False, True)) + said("absent", WRONG, FAST, (False, True))
    )
    (folder / "others.jsonl").write_text(
        said("exp", SLOW, FAST, (True, True))
        + said("exp", FAST, WRONG, (True, False))
        + said("exp", "import torch def forward(", FAST, (True, True))
    )
    given = (folder, out, "--suite", suite, "--device", "cpu", "--timing-seconds", "0.2")
    begun = command(MODULE, *given, "--seconds", "0.001")
    assert begun.returncode == 1, begun.stderr
    done = command(MODULE, *given)
    assert done.returncode == 0, done.stderr
    rows = ResultLines(out, VerdictRow).rows
    assert len(rows) == len({row.kernel for row in rows}) == 2 * 5
    page = out.with_suffix(".md").read_text()
    assert "By kernelbench-x, 1 of 1 judged were rescued, 100% [21%, 100%] (2 said to be)" in page
    assert "By refinery, 0 of 1 judged were rescued, 0% [0%, 79%] (2 said to be)" in page
    assert "wrong before and after (wrong_values)" in page
    assert "of 1 judged were regressed, 100%" in page and "faster; x2 |" in page
    assert "wrong_later) |" in page and "no Python" in page
    again = command(MODULE, *given)
    assert again.returncode == 0 and ResultLines(out, VerdictRow).rows == rows


def row(status: str, *speedup: float, reason: str = "") -> VerdictRow:
    low, value, high = speedup or (None, None, None)
    found = {"problem": "exp", "status": status, "reason": reason, "wall_s": 1.0, "verdict_s": 1.0}
    found |= {"speedup": value, "speedup_low": low, "speedup_high": high}
    return VerdictRow.model_validate(found | {"kernel": "exp k refinery"})


@pytest.mark.parametrize(
    ("claim", "before", "after", "what"),
    [
        ("faster", row("correct", 0.9, 1.0, 1.1), row("correct", 1.0, 1.1, 1.2), "no clear"),
        ("faster", row("correct", 0.99, 1.0, 1.01), row("correct", 1.0, 1.1, 1.2), "faster; x1.1"),
        ("faster", row("correct", 1.0, 1.1, 1.2), row("correct", 0.9, 0.91, 0.92), "slower"),
        ("faster", row("correct"), row("correct", 1.0, 1.1, 1.2), "not timed"),
        ("faster", row("incorrect"), row("correct", 1.0, 1.1, 1.2), "rescued"),
        ("rescued", row("correct"), row("correct"), "right before and after"),
        ("rescued", row("runtime_error", reason="syntax_error"), row("correct"), "rescued"),
        ("rescued", row("incorrect"), row(transitions.CANNOT_BE_JUDGED), "not judged"),
    ],
)
def test_a_claim_holds_or_not(claim: str, before: VerdictRow, after: VerdictRow, what: str) -> None:
    assert outcome(Transition("exp", "", claim, None, ("", "")), before, after).startswith(what)


def test_what_is_not_reached_is_not_counted() -> None:
    page = markdown([], [], [Transition("exp", "r", "rescued", None, ("", ""))])
    assert "By refinery, 0 of 0 judged were rescued (1 said to be):" in page


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"before": 1}\n')
    assert "line 1 is no transition" in refused(MODULE, tmp_path, tmp_path / "out.jsonl")
