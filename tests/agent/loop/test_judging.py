"""The profiler of a run works on a device that the executor leaves to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from agent.config.run_config import RunConfig
from agent.loop.judging import profiler_beside
from evaluator.executor.local import LocalExecutor
from tests.evaluator.collect.stand_in_ncu import PROFILES, stand_in_gpu, stand_in_ncu
from tests.tools.test_profile import LIBRARY, correct, request
from tools.profiling.profile_report import ProfilerTier


class OneGpu:
    """Stands for an executor whose GPU is free."""

    @contextmanager
    def for_profiler(self) -> Iterator[str]:
        yield "cuda:0"


def test_a_profile_is_made_on_a_free_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    stand_in_ncu(tmp_path / "bin", tmp_path / "log", PROFILES)
    stand_in_gpu(monkeypatch)
    config = RunConfig(output=tmp_path / "run")
    with profiler_beside(cast(LocalExecutor, OneGpu()), config) as profiler:
        assert profiler(request(LIBRARY), correct()).rung is ProfilerTier.NCU
