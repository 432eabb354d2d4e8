"""Nsight Compute is played by a script that answers as it does; the exports are real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.collect.ncu import REPORT, collect_ncu, known_metrics
from evaluator.collect.target.target_process import COLLECTED
from evaluator.errors import ProfilerError
from tests.evaluator.collect.stand_in_ncu import GPU, PROFILES, WORK, stand_in_ncu
from tests.evaluator.collect.test_target_process import request


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    folder = tmp_path / "folder"
    folder.mkdir()
    request("", folder)
    return folder


def install(folder: Path, profile: str) -> Path:
    return stand_in_ncu(folder.parent / "bin", folder.parent / "log", profile)


def test_kernels_rules_and_work_come_together(folder: Path) -> None:
    install(folder, PROFILES.replace("echo report", 'echo "$@"'))
    collected = collect_ncu(folder, GPU, timeout_s=20)
    assert collected.gpu is not None
    assert collected.gpu.kernels[0].name == "gelu_k"
    assert collected.gpu.kernels[0].hints
    assert collected.work is not None
    assert collected.work.bytes == 1e6
    # Neither known by the chip nor in the export.
    assert "l1_hit_pct" in collected.gpu.missing
    asked = (folder / REPORT).read_text()
    assert "--profile-from-start off --clock-control none" in asked
    assert "gpu__time_duration.sum" in asked
    assert "lts__t_sector_hit_rate" not in asked
    assert (folder / COLLECTED).is_file()


@pytest.mark.parametrize("source", ["__global__ void gelu_k() {}", "KERNEL(gelu_k) {}"])
def test_lines_are_asked_for_once_of_the_candidates_own_kernel(source: str, folder: Path) -> None:
    # The first is known to be one before the figures are read, the second only then.
    install(folder, PROFILES)
    collected = collect_ncu(folder, GPU, timeout_s=20, source=source)
    assert collected.gpu is not None
    assert [line.line for line in collected.gpu.kernels[0].lines] == [7]
    asked = (folder.parent / "log").read_text()
    assert "--page source --print-source cuda,sass --kernel-name regex:(^|::)gelu_k$" in asked
    assert asked.count("--page") == 3


def test_metrics_are_asked_for_once(folder: Path) -> None:
    script = install(folder, "true")
    assert known_metrics(script, "X") == {"gpu__time_duration", "gpu__dram_throughput"}
    assert known_metrics(script, "X") == {"gpu__time_duration", "gpu__dram_throughput"}
    assert (folder.parent / "log").read_text().count("--query-metrics") == 1
    known_metrics(script, "another device")
    assert (folder.parent / "log").read_text().count("--query-metrics") == 2


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("echo '==ERROR== ERR_NVGPUCTRPERM - no permission'; exit 1", "ERR_NVGPUCTRPERM"),
        ("echo 'RuntimeError: boom'; exit 9", "ended with 9: RuntimeError: boom"),
        ("true", "left nothing"),
        (f"echo '{WORK}' > collected.json", "profiled no kernel"),
        ("sleep 60", "longer than 0.5 s"),
    ],
)
def test_failures_are_one_line(folder: Path, profile: str, message: str) -> None:
    install(folder, profile)
    with pytest.raises(ProfilerError, match=message) as caught:
        collect_ncu(folder, GPU, timeout_s=0.5 if "sleep" in profile else 20)
    assert "\n" not in str(caught.value)
