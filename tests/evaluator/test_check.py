"""`python -m evaluator.check`, as a user or a program calls it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evaluator.evaluation import Evaluation
from tests.command import command
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS

pytestmark = pytest.mark.thorough


def check(
    folder: Path, source: str, *options: str, kernel: str = "kernel.py"
) -> subprocess.CompletedProcess[str]:
    (folder / "problem.py").write_text(SCALE_AND_BIAS)
    (folder / "kernel.py").write_text(source)
    words = ("--problem", folder / "problem.py", "--device", "cpu", "--timing-seconds", "0.2")
    return command("evaluator.check", folder / kernel, *words, *options)


def test_a_verdict_as_json(tmp_path: Path) -> None:
    # So long that it is timed in several workers.
    done = check(tmp_path, HONEST, "--json", "--audit", "--timing-seconds", "1")
    assert done.returncode == 0, done.stderr
    accepted: dict[str, Any] = json.loads(done.stdout)
    evaluation = Evaluation.model_validate(accepted)
    assert evaluation.model_dump(mode="json") == accepted
    assert (accepted["status"], accepted["reason"]) == ("correct", "")
    assert accepted["message"].startswith("correct; ")
    assert {"torch", "python"} <= set(accepted["conditions"])
    assert accepted["provenance"] == "library"
    audit = accepted["audit"]
    assert audit["occasion"] == "asked"
    assert audit["shares"]["library"] > 0.9
    assert accepted["seconds"]["audit"] == audit["seconds"] > 0


def test_a_refusal_for_a_person(tmp_path: Path) -> None:
    done = check(tmp_path, HONEST, "--no-audit", "--require", "custom")
    assert (done.returncode, done.stdout) == (1, "")
    assert "kernel.py on problem: integrity" in done.stderr
    assert "not_custom: custom kernels are required, and this is library" in done.stderr
    assert "provenance: library: 0 % of the time in its own kernels" in done.stderr


def test_a_file_with_a_byte_order_mark_is_judged_as_python_reads_it(tmp_path: Path) -> None:
    done = check(tmp_path, "\ufeff" + HONEST, "--no-audit")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "head",
    [
        b"# \xe9\n",
        b"# coding: raw_unicode_escape\n# \\ud800\n",
    ],
)
def test_a_file_that_python_cannot_decode_is_a_syntax_error(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "latin.py").write_bytes(head + HONEST.encode())
    done = check(tmp_path, HONEST, "--no-audit", kernel="latin.py")
    assert done.returncode == 1
    assert "syntax_error" in done.stderr and "declare its encoding" in done.stderr


def test_a_candidates_words_move_no_cursor(tmp_path: Path) -> None:
    raising = HONEST.replace(
        "return torch.relu",
        "raise RuntimeError('\\x1b[3A\\r' + 'correct')\n        return torch.relu",
    )
    done = check(tmp_path, raising, "--no-audit")
    assert done.returncode == 1 and "forward_raised" in done.stderr + done.stdout
    assert "\x1b" not in done.stdout + done.stderr and "\\x1b[3A" in done.stdout + done.stderr
