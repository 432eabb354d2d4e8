from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.collect.collected import Collected
from tests.evaluator.collect.stand_in_ncu import PROFILES, stand_in_gpu, stand_in_ncu
from tests.tools.test_profile import LIBRARY, correct, request
from tools.profile import profile
from tools.profiling.kept_report import MOST_BYTES, keep_report, kept_reports
from tools.profiling.profile_report import ProfilerTier


def test_the_report_of_nsight_compute_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    stand_in_ncu(tmp_path / "bin", tmp_path / "log", PROFILES)
    stand_in_gpu(monkeypatch)
    result = profile(request(LIBRARY, device="cuda:0"), correct(), keep=tmp_path / "kept")
    assert result.rung is ProfilerTier.NCU
    assert (tmp_path / "kept" / "profile.ncu-rep").read_text() == "report\n"
    assert kept_reports(tmp_path / "kept") == {"profile.ncu-rep": 7}
    kept = Collected.model_validate_json((tmp_path / "kept" / "collected.json").read_text())
    assert kept.gpu is not None and kept.gpu.kernels[0].name == "gelu_k"


def test_a_trace_is_kept_too_and_replaces_an_older_one(tmp_path: Path) -> None:
    (tmp_path / "left").mkdir()
    for text in ("{}", "[]"):
        (tmp_path / "left" / "trace.json").write_text(text)
        keep_report(tmp_path / "left", Collected(), tmp_path / "run" / "profiles" / "hash")
        assert (tmp_path / "run" / "profiles" / "hash" / "trace.json").read_text() == text


def test_neither_links_nor_what_is_too_large(tmp_path: Path) -> None:
    left = tmp_path / "left"
    left.mkdir()
    (tmp_path / "secret").write_text("of another")
    (left / "trace.json").symlink_to(tmp_path / "secret")
    with (left / "profile.ncu-rep").open("wb") as report:
        report.truncate(MOST_BYTES + 1)
    keep_report(left, Collected(), tmp_path / "kept")
    assert kept_reports(tmp_path / "kept") == {}
    assert kept_reports(tmp_path / "nowhere") == {}
