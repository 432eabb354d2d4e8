"""`--keep-profiles`: the profiler's own report lies beside the profile, and `show` names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from agent.config.options import RunOptions
from agent.config.run_config import RunConfig
from agent.loop.judging import profiler_beside
from agent.record.run_files import RunFiles
from agent.resolution import resolve
from evaluator.executor.local import LocalExecutor
from problems.errors import UsageError
from tests.agent.made_records import turn
from tests.agent.view.test_trajectory import shown, write_run
from tests.evaluator.collect.stand_in_ncu import PROFILES, stand_in_gpu, stand_in_ncu
from tests.evaluator.made_evaluations import correct as made_correct
from tests.tools.test_profile import LIBRARY, correct, request


class OneGpu:
    """Stands for an executor whose GPU is free."""

    @contextmanager
    def for_profiler(self) -> Iterator[str]:
        yield "cuda:0"


@pytest.mark.parametrize("keep", [True, False])
def test_the_report_lies_in_the_run_directory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    keep: bool,
) -> None:
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    stand_in_ncu(tmp_path / "bin", tmp_path / "log", PROFILES)
    stand_in_gpu(monkeypatch)
    run = tmp_path / "run"
    config = RunConfig(output=run, keep_profiles=keep)
    asked = request(LIBRARY, device="cuda:0")
    with profiler_beside(cast(LocalExecutor, OneGpu()), config) as profiler:
        found = profiler(asked, correct())
    kernel = asked.candidate.hash
    report = RunFiles(run).profile_folder(kernel) / "profile.ncu-rep"
    assert report.is_file() is keep
    write_run(run, [turn(0, made_correct(1.5), candidate=kernel, profile=found.model_dump())])
    assert (f"  kept: {report} (7 bytes)\n" in shown(capsys, run)) is keep


def test_a_cluster_keeps_no_reports() -> None:
    with pytest.raises(UsageError, match="--keep-profiles is for --executor local"):
        resolve(RunOptions(keep_profiles=True, executor="ray", device="cpu"))
