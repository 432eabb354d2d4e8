"""Why counters can't be read, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import rungs

ALL = "CapEff:\t000001ffffffffff\n"
DOCKER = "CapEff:\t00000000a80425fb\n"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """One with a driver that keeps counters for the administrator, and a root that may do all."""
    monkeypatch.setattr(rungs.platform, "release", lambda: "6.8.0")
    for name, text in (("DRIVER_PARAMETERS", "RmProfilingAdminOnly: 1\n"), ("STATUS", ALL)):
        (tmp_path / name).write_text(f"Other: 3\n{text}")
        monkeypatch.setattr(rungs, name, tmp_path / name)
    return tmp_path


def test_root_reads_counters(machine: Path) -> None:
    assert rungs.counters(root=True) == rungs.Rung("counters", "yes", "root")


def test_a_user_needs_the_modules_option(machine: Path) -> None:
    told = rungs.counters(root=False)
    assert told is not None and told.state == "no"
    assert "ERR_NVGPUCTRPERM" in told.remedy
    assert "NVreg_RestrictProfilingToAdminUsers=0" in told.remedy
    (machine / "DRIVER_PARAMETERS").write_text("RmProfilingAdminOnly: 0\n")
    assert rungs.counters(root=False) == rungs.Rung("counters", "yes", "open to users")


def test_a_containers_root_needs_the_capability(machine: Path) -> None:
    (machine / "STATUS").write_text(DOCKER)
    told = rungs.counters(root=True)
    assert told is not None and told.state == "no"
    assert "--cap-add SYS_ADMIN" in told.remedy


def test_below_gvisor_there_are_none(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rungs.platform, "release", lambda: "4.4.0")
    told = rungs.counters(root=True)
    assert told is not None and told.state == "no"
    assert "gVisor" in told.found


def test_without_a_driver_there_is_nothing_to_say(machine: Path) -> None:
    (machine / "DRIVER_PARAMETERS").unlink()
    assert rungs.counters(root=True) is None


def test_reading_code_needs_a_program(tmp_path: Path) -> None:
    assert rungs.code(tmp_path).state == "yes"
    assert rungs.code(None).state == "note"
