"""The right that is kept for reading counters, by what the driver says and what root has."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.collect import counter_rights
from evaluator.collect.walled import right_for_counters
from evaluator.walls.privileges import Right

ADMINISTRATORS = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n"
RELEASE = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (root@host)\n"
    "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n"
)


@pytest.mark.parametrize(
    ("params", "release", "gpu", "held", "kept"),
    [
        (ADMINISTRATORS, "580.159.04", True, set(Right), Right.PERFMON),
        (ADMINISTRATORS, "580.159.04", True, {Right.SYS_ADMIN}, Right.SYS_ADMIN),
        (ADMINISTRATORS, "580.159.04", True, set(), None),
        (ADMINISTRATORS, "550.54.15", True, set(Right), Right.SYS_ADMIN),
        (ADMINISTRATORS, None, True, set(Right), Right.SYS_ADMIN),
        ("RmProfilingAdminOnly: 0\n", "580.159.04", True, set(Right), None),
        (None, None, True, set(Right), Right.SYS_ADMIN),
        (None, None, False, set(Right), None),
    ],
)
def test_which_right_the_counters_ask_for(
    params: str | None,
    release: str | None,
    gpu: bool,
    held: set[Right],
    kept: Right | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if params is not None:
        (tmp_path / "params").write_text(params)
    if release is not None:
        (tmp_path / "version").write_text(RELEASE.format(release))
    if gpu:
        (tmp_path / "control").touch()
    monkeypatch.setattr(counter_rights, "_DRIVER", tmp_path)
    monkeypatch.setattr(counter_rights, "_CONTROL", tmp_path / "control")
    monkeypatch.setattr(counter_rights, "has", held.__contains__)
    assert right_for_counters() is kept
