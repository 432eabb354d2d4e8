"""Processors that may be used: a share of a machine is told from its affinity and its quota."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaluator.hardware.cores import usable_cores


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 64),
        ({"cpu.max": "max 100000"}, 64),
        ({"cpu.max": "800000 100000"}, 8),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "250000 100000"}, 3),
        ({"cpu.max": "6400000 50000"}, 64),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 64),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
    ],
)
def test_a_quota_of_either_version_counts(
    files: dict[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{text}\n")
    assert usable_cores(tmp_path) == expected


def test_affinity_counts() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)
