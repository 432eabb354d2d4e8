"""What the driver says of performance counters, and whether a right of root's is kept for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.collect.target import walled
from evaluator.hardware import counter_rights


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Without a driver so far."""
    monkeypatch.setattr(counter_rights, "_PARAMETERS", tmp_path / "params")
    monkeypatch.setattr(counter_rights, "_CONTROL", tmp_path / "control")
    return tmp_path


@pytest.mark.parametrize(
    ("params", "gpu", "asked"),
    [
        ("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n", True, True),
        ("RmProfilingAdminOnly: 0\n", True, False),
        (None, True, True),
        (None, False, False),
    ],
)
def test_whether_counters_ask_for_a_right(
    params: str | None, gpu: bool, asked: bool, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if params is not None:
        (machine / "params").write_text(params)
    if gpu:
        (machine / "control").touch()
    monkeypatch.setattr(walled, "may_watch", lambda: True)
    assert walled.counters_ask_for_a_right() is asked
    monkeypatch.setattr(walled, "may_watch", lambda: False)
    assert not walled.counters_ask_for_a_right()
