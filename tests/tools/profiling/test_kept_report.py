from __future__ import annotations

from pathlib import Path

from evaluator.collect.collected import Collected
from tools.profiling.kept_report import MOST_BYTES, keep_report, kept_reports


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
