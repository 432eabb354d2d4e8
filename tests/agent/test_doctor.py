import json
import os
from pathlib import Path

import pytest

from agent import doctor
from agent.doctor import KEYS, Finding, command, examine
from agent.resolution import missing_for
from evaluator.builder import toolchain as compilers
from evaluator.builder.toolchain import cxx_compiler, find_tool
from evaluator.command.command_line import serve
from evaluator.evaluation import Backend
from evaluator.hardware import counter_rights, devices
from evaluator.hardware.devices import DeviceInfo
from evaluator.walls.demands import BESIDES, STRICT


def found(findings: list[Finding], name: str) -> Finding:
    (finding,) = [finding for finding in findings if finding.name == name]
    return finding


def test_this_machine_is_described_and_what_is_missing_comes_with_a_remedy() -> None:
    here = list(examine())
    groups = list(dict.fromkeys(finding.group for finding in here))
    assert groups == [
        *("software", "compilers", "devices", "profilers", "isolation", "space", "keys")
    ]
    assert found(here, "python").state == "yes"
    assert found(here, "torch").found == doctor.torch_version()
    assert found(here, "g++").state == ("yes" if cxx_compiler() else "no")
    walls = {finding.name for finding in here if finding.group == "isolation"}
    assert walls >= {*STRICT, *BESIDES}
    assert all(finding.remedy for finding in here if finding.state == "no")
    assert all("\n" not in finding.found + finding.remedy for finding in here)


def test_isolation_is_tried_and_not_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_layers_that_hold", lambda: ("network_namespace",))
    findings = list(doctor._isolation())
    assert found(findings, "network_namespace").state == "yes"
    ipc = found(findings, "ipc_namespace")
    assert (ipc.state, bool(ipc.remedy)) == ("no", True)
    assert found(findings, "landlock_scope").state == "note"


def test_every_gpu_is_listed_and_which_make_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [DeviceInfo("NVIDIA H200", "cuda", memory_bytes=140 * 2**30)] * 3
    monkeypatch.setattr(devices, "list_gpus", lambda: gpus)
    findings = list(doctor._gpus())
    listed = [finding.name for finding in findings if finding.name.startswith("cuda:")]
    assert listed == ["cuda:0", "cuda:1", "cuda:2"]
    assert found(findings, "cuda:2").found == "NVIDIA H200, 140 GiB"
    assert found(findings, "several GPUs").found == "--device all: one run on all of them"
    gpus[1] = DeviceInfo("NVIDIA A100", "cuda")
    told = found(list(doctor._gpus()), "several GPUs").found
    assert told == "--device cuda:0,2 for NVIDIA H200, --device cuda:1 for NVIDIA A100"


def test_keys_are_named_and_never_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "very-secret")
    assert serve(command, "doctor", ["--json"]) == 0
    out = capsys.readouterr().out
    findings = [Finding(**entry) for entry in json.loads(out)["findings"]]
    assert found(findings, "ANTHROPIC_API_KEY").state == "yes"
    assert found(findings, "OPENAI_API_KEY").state == "note"
    assert "very-secret" not in out


def test_the_exit_code_speaks_only_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = [Finding("software", "torch", "no", "", "pip install torch")]
    monkeypatch.setattr(doctor, "examine", lambda: iter(lacking))
    assert serve(command, "doctor", []) == 0
    assert capsys.readouterr().out.splitlines() == [
        "software",
        f"  no  {'torch':<24}pip install torch",
    ]
    assert serve(command, "doctor", ["--strict"]) == 1
    monkeypatch.setattr(doctor, "examine", lambda: iter(()))
    assert serve(command, "doctor", ["--strict"]) == 0


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine with nothing on its path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CXX", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(compilers, "TOOLKIT", tmp_path)
    return monkeypatch


def program(folder: Path, name: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_missing_compilers_are_named_with_what_installs_them(
    bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "install g++" in (missing_for(Backend.CPP) or "")
    assert "install g++" in (missing_for(Backend.CUDA) or "")
    program(tmp_path, "g++")
    assert missing_for(Backend.CPP) is None
    assert "CUDA toolkit" in (missing_for(Backend.CUDA) or "")
    program(tmp_path, "nvcc")
    assert missing_for(Backend.CUDA) is None


def test_compilers_are_found_where_their_variables_point(
    bare: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nvcc = program(tmp_path / "cuda" / "bin", "nvcc")
    bare.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert find_tool("nvcc") == nvcc
    clang = program(tmp_path, "clang++")
    bare.setenv("CXX", "clang++")
    assert cxx_compiler() == clang
    bare.setenv("CXX", os.fspath(tmp_path / "gone"))
    assert cxx_compiler() is None


ROOT_ALONE = {"params": "Other: 3\nRmProfilingAdminOnly: 1\n"}


@pytest.mark.parametrize(
    ("files", "release", "watches", "root", "state", "words"),
    [
        (ROOT_ALONE, "6.8.0", True, True, "yes", "root, CAP_PERFMON"),
        (ROOT_ALONE, "6.8.0", True, False, "no", "NVreg_RestrictProfilingToAdminUsers=0"),
        ({"params": "RmProfilingAdminOnly: 0\n"}, "6.8.0", True, False, "yes", "open to users"),
        (ROOT_ALONE, "6.8.0", False, True, "no", "--cap-add PERFMON"),
        # Older drivers know administrators alone.
        (ROOT_ALONE | {"version": "550.54.15\n"}, "6.8.0", True, True, "no", "before R565"),
        (ROOT_ALONE | {"version": "565.57.01\n"}, "6.8.0", True, True, "yes", "root"),
        # What the driver does not say is no refusal.
        ({"control": ""}, "6.8.0", True, False, "note", "can't tell"),
        (ROOT_ALONE, "4.4.0", True, True, "no", "gVisor"),
        ({}, "6.8.0", True, True, None, ""),
    ],
)
def test_who_reads_counters(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    files: dict[str, str],
    release: str,
    watches: bool,
    root: bool,
    state: str | None,
    words: str,
) -> None:
    monkeypatch.setattr(doctor.platform, "release", lambda: release)
    monkeypatch.setattr(counter_rights, "_PARAMETERS", tmp_path / "params")
    monkeypatch.setattr(counter_rights, "_VERSION", tmp_path / "version")
    monkeypatch.setattr(counter_rights, "_CONTROL", tmp_path / "control")
    monkeypatch.setattr(doctor, "may_watch", lambda: watches)
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 0 if root else 1)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    told = doctor.counters()
    assert (told and told.state) == state
    assert told is None or words in told.found + told.remedy
