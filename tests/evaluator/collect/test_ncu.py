"""Nsight Compute is played by a script that answers as it does; the exports are real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.collect.collected import Collected
from evaluator.collect.ncu import collect_ncu, known_metrics, parse_query
from evaluator.collect.nsight.ncu_metrics import QUANTITIES, names
from evaluator.collect.nsight.read_report import REPORT
from evaluator.errors import ProfilerError
from tests.evaluator.collect.stand_in_ncu import GPU, PROFILES, WORK, stand_in_ncu
from tests.evaluator.collect.target_requests import request


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


def test_kernels_and_work_come_together(folder: Path) -> None:
    install(folder, PROFILES.replace("echo report", 'echo "$@"'))
    collected = collect_ncu(folder, GPU, timeout_s=20)
    assert collected.gpu is not None
    assert collected.gpu.kernels[0].name == "gelu_k"
    assert collected.work == Collected.model_validate_json(WORK).work
    # Neither known by the chip nor in the export.
    assert "l2_hit_pct" in collected.gpu.missing
    asked = (folder / REPORT).read_text()
    assert "--profile-from-start off --clock-control none" in asked
    assert "gpu__time_duration.sum" in asked
    assert "lts__t_sector_hit_rate" not in asked


@pytest.mark.parametrize(
    ("source", "pages"),
    [
        # Which kernel is the hottest is known before the figures are read, or only then.
        ("__global__ void gelu_k() {}", 2),
        ("KERNEL(gelu_k) {}", 2),
        ("__global__ void other() {} KERNEL(gelu_k) {}", 3),
        ("torch.relu(x)", 1),
    ],
)
def test_lines_are_read_of_the_candidates_hottest_kernel(
    source: str, pages: int, folder: Path
) -> None:
    install(folder, PROFILES)
    request(source, folder)
    collected = collect_ncu(folder, GPU, timeout_s=20)
    assert collected.gpu is not None
    assert [line.line for line in collected.gpu.kernels[0].lines] == ([7] if pages > 1 else [])
    asked = (folder.parent / "log").read_text()
    source_page = "--page source --print-source cuda,sass --kernel-name regex:(^|::)gelu_k$"
    assert asked.count(f"{source_page} --launch-count 1") == (pages > 1)
    assert asked.count("--page") == pages


def test_a_report_that_cannot_be_read(folder: Path) -> None:
    script = install(folder, PROFILES)
    broken = script.read_text().replace("cat", "echo broken; exit 3; cat", 1)
    script.write_text(broken)
    with pytest.raises(ProfilerError, match=r"reading ncu's report ended with 1: .*3: broken"):
        collect_ncu(folder, GPU, timeout_s=20)


def test_metrics_are_asked_for_once(folder: Path) -> None:
    script = install(folder, "true")
    for device, asked in (("X", 1), ("X", 1), ("another device", 2)):
        assert known_metrics(script, device) == {"gpu__time_duration", "gpu__dram_throughput"}
        assert (folder.parent / "log").read_text().count("--query-metrics") == asked


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


def test_what_the_chip_does_not_know_is_not_asked_for_and_told() -> None:
    known = parse_query(
        "Device NVIDIA H200 (GH100)\n"
        "gpu__time_duration   Counter  nanosecond  time\n"
        "sm__pipe_tensor_cycles_active   Counter   cycle  of the tensor pipe\n"
    )
    wanted, missing = names(known)
    assert "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed" in wanted
    assert not any(name.startswith("sm__pipe_tensor_type") for name in wanted)
    assert "l2_pct" in missing
    assert "tensor_pct" not in missing


def test_one_name_is_enough_where_the_chip_lists_it() -> None:
    parts = {"sm__inst_executed", "sm__inst_executed_pipe_lsu"}
    tensor = {name.partition(".")[0] for name in QUANTITIES["tensor_pct"][1]}
    known = frozenset({"gpu__time_duration", *parts, *tensor})
    wanted, missing = names(known)
    assert [name for name in wanted if "tensor" in name] == [QUANTITIES["tensor_pct"][1][0]]
    assert parts <= {name.partition(".")[0] for name in wanted}  # the busiest counts
    # Counted by a patched kernel, and never listed: asked for, and n/a where it is not known.
    assert "smsp__sass_thread_inst_executed_op_fp32_pred_on.sum" in wanted
    assert "memory_l1_wavefronts_shared" in wanted
    assert not {"tensor_pct", "shared_wavefronts", "time_us"} & set(missing)


def test_without_an_answer_everything_is_asked_for() -> None:
    wanted, missing = names(None)
    assert missing == []
    every = {name for _, names in QUANTITIES.values() for name in names}
    assert sorted(wanted) == sorted(name for name in every if "pcsamp" not in name)
