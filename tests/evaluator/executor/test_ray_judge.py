"""What an actor of a cluster holds, without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.executor.ray_judge import RayJudge
from tests.waiting import once


def test_a_judge_gets_nothing_of_rays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that starts before the first question."""
    # The caller may want that many threads, and judges have to get the number.
    wanted = b"OMP_NUM_THREADS=" in Path("/proc/self/environ").read_bytes()
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    judge = RayJudge("cpu")
    try:
        (pid,) = judge._executor.judge_pids.values()
        # Empty for the moment in which the process becomes another program.
        told = once(Path(f"/proc/{pid}/environ").read_bytes)
        assert b"PATH=" in told
        assert b"RAY_AUTH_TOKEN" not in told
        assert (b"OMP_NUM_THREADS" in told) == wanted
    finally:
        judge._executor.close()
