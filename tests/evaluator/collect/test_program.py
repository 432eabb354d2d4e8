from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evaluator.collect.target.program import run
from evaluator.errors import ProfilerError
from tests.evaluator.processes import still_running


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def test_the_last_line_printed_is_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ProfilerError, match="ended with 3: the reason"):
        run(shell("echo first; echo the reason; exit 3"), tmp_path, timeout_s=20)


def test_no_key_reaches_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    assert "hunter2" not in run(["env"], tmp_path, timeout_s=20)


def test_nobody_truncates_what_was_printed(tmp_path: Path) -> None:
    """As a candidate could a file that a sanitizer writes to."""
    code = "import os; os.ftruncate(1, 0)"
    script = shell(f"echo finding; {sys.executable} -c '{code}'; true")
    assert "finding" in run(script, tmp_path, timeout_s=20)


def test_children_die_with_the_time_out(tmp_path: Path) -> None:
    with pytest.raises(ProfilerError, match=r"longer than 0.5 s"):
        run(shell("sleep 300 & echo $! > child; wait"), tmp_path, timeout_s=0.5)
    child = int((tmp_path / "child").read_text())
    assert not still_running([child])
