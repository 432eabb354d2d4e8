"""Why counters can't be read, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import doctor
from evaluator.hardware import counter_rights


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """One with a driver that keeps counters for the administrator, and a root that may do all."""
    monkeypatch.setattr(doctor.platform, "release", lambda: "6.8.0")
    monkeypatch.setattr(counter_rights, "_PARAMETERS", tmp_path / "params")
    monkeypatch.setattr(counter_rights, "_VERSION", tmp_path / "version")
    monkeypatch.setattr(counter_rights, "_CONTROL", tmp_path / "control")
    monkeypatch.setattr(doctor, "may_watch", lambda: True)
    (tmp_path / "params").write_text("Other: 3\nRmProfilingAdminOnly: 1\n")
    return tmp_path


def test_root_reads_counters(machine: Path) -> None:
    assert doctor.counters(root=True) == doctor.Finding(
        "profilers", "counters", "yes", "root, CAP_PERFMON"
    )


def test_a_user_needs_the_modules_option(machine: Path) -> None:
    told = doctor.counters(root=False)
    assert told is not None and told.state == "no"
    assert "ERR_NVGPUCTRPERM" in told.remedy
    assert "NVreg_RestrictProfilingToAdminUsers=0" in told.remedy
    (machine / "params").write_text("RmProfilingAdminOnly: 0\n")
    assert doctor.counters(root=False) == doctor.Finding(
        "profilers", "counters", "yes", "open to users"
    )


def test_a_containers_root_needs_the_capability(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "may_watch", lambda: False)
    told = doctor.counters(root=True)
    assert told is not None and told.state == "no"
    assert "--cap-add PERFMON" in told.remedy


@pytest.mark.parametrize(("release", "state"), [("550.54.15", "no"), ("565.57.01", "yes")])
def test_older_drivers_know_administrators_alone(machine: Path, release: str, state: str) -> None:
    (machine / "version").write_text(f"{release}\n")
    told = doctor.counters(root=True)
    assert told is not None and told.state == state
    assert ("before R565" in told.remedy) == (state == "no")


def test_what_the_driver_does_not_say_is_no_refusal(machine: Path) -> None:
    (machine / "params").unlink()
    (machine / "control").touch()
    told = doctor.counters(root=False)
    assert told is not None and told.state == "note"


def test_below_gvisor_there_are_none(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.platform, "release", lambda: "4.4.0")
    told = doctor.counters(root=True)
    assert told is not None and told.state == "no"
    assert "gVisor" in told.found


def test_without_a_driver_there_is_nothing_to_say(machine: Path) -> None:
    (machine / "params").unlink()
    assert doctor.counters(root=True) is None


def test_reading_code_needs_a_program(tmp_path: Path) -> None:
    assert doctor.code(tmp_path).state == "yes"
    assert doctor.code(None).state == "note"
