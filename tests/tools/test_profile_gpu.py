"""Profiles of real kernels on a GPU: which tier held, and whether the label is the planted one."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evaluator.builder.toolchain import find_tool
from evaluator.collect.ncu import REPORT
from evaluator.errors import ProfilerError
from evaluator.evaluation import Backend, Status
from evaluator.executor.local import LocalExecutor
from evaluator.ipc.service import Service
from problems.cache_folder import cache_folder
from tests.advice.planted import FEW_BLOCKS
from tests.evaluator.made_requests import evaluation_request
from tools.profile import profile
from tools.profile_server import ProfileRequest
from tools.profiling.profile_report import Bottleneck, Profile, ProfilerTier

pytestmark = pytest.mark.gpu

NARROW, WIDE = FEW_BLOCKS.source("planted"), FEW_BLOCKS.source("fixed")
KERNEL = "square_add_k"
ELEMENTS = 8192 * 4096


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor("cuda:0") as executor:
        yield executor


def judged(executor: LocalExecutor, source: str) -> ProfileRequest:
    settings = {"backend": Backend.CUDA, "device": "cuda:0", "timing_seconds": 2.0}
    request = evaluation_request(source, FEW_BLOCKS.reference, **settings)
    evaluation = executor.evaluate(request)
    assert evaluation.status is Status.CORRECT, (evaluation.message, evaluation.build)
    return ProfileRequest(request=request, evaluation=evaluation)


def profiled(executor: LocalExecutor, source: str, keep: Path | None = None) -> Profile:
    asked = judged(executor, source)
    result = profile(asked.request, asked.evaluation, keep=keep)
    print(result.summary)
    return result


def libraries() -> set[str]:
    """Names of what is built in the cache."""
    return {entry.name for entry in (cache_folder() / "libraries").iterdir()}


def test_vectorised_kernel_is_near_the_memory_bound(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    result = profiled(executor, WIDE, tmp_path / "kept")
    best = ProfilerTier.NCU if find_tool("ncu") is not None else ProfilerTier.TORCH_TRACE
    assert result.rung is best, result.rung_reason
    assert result.bottleneck in (Bottleneck.MEMORY_BANDWIDTH, Bottleneck.AT_THE_BOUND)
    assert [kernel.name for kernel in result.kernels if kernel.own] == [KERNEL]
    if result.rung is ProfilerTier.NCU:
        assert (tmp_path / "kept" / REPORT).stat().st_size > 0
        moved = sum(
            result.kernels[0].metrics[name] or 0.0
            for name in ("dram_read_bytes", "dram_write_bytes")
        )
        assert moved == pytest.approx(2 * 4 * ELEMENTS, rel=0.15)
        assert len(result.missing) <= 4, result.missing
        # Counters or not, a candidate is never root.
        assert "own_uid" in result.isolation or os.geteuid() != 0


def test_sixteen_blocks_are_too_few(executor: LocalExecutor) -> None:
    result = profiled(executor, NARROW)
    assert result.bottleneck is Bottleneck.TOO_FEW_BLOCKS
    assert "16 blocks" in result.headline
    if result.rung is ProfilerTier.NCU:
        # The line is that of the candidate's own file.
        told = re.search(r"^- line (\d+) `(.*)`.* of the stalls", result.summary, re.MULTILINE)
        assert told is not None
        assert NARROW.splitlines()[int(told[1]) - 1].strip() == told[2]


def test_library_kernels_are_named_as_such(executor: LocalExecutor) -> None:
    library = "x, = inputs; return (x * x + x) * (ext.run(x[:1]).numel() / 4096)"
    result = profiled(executor, WIDE.replace("return ext.run(*inputs)", library))
    assert result.bottleneck is Bottleneck.LIBRARY
    assert {kernel.own for kernel in result.kernels} == {True, False}


def test_without_ncu_the_trace_holds(
    executor: LocalExecutor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*arguments: object, **options: object) -> object:
        raise ProfilerError("the performance counters are not open to this user")

    monkeypatch.setattr("evaluator.collect.ncu.collect_ncu", refuse)
    result = profiled(executor, WIDE, tmp_path)
    assert result.rung is ProfilerTier.TORCH_TRACE
    assert (tmp_path / "trace.json").stat().st_size > 0
    assert "counters are not open" in result.rung_reason
    assert "counters are not open" in result.summary
    assert result.bottleneck in (Bottleneck.MEMORY_BANDWIDTH, Bottleneck.AT_THE_BOUND)
    assert result.kernels[0].metrics["grid"] == ELEMENTS / 4 / 1024


def test_the_second_of_two_profiles_finds_a_process_that_waits(executor: LocalExecutor) -> None:
    if find_tool("ncu") is None:
        pytest.skip("the spare is ncu's, which is not installed here")
    turns = [judged(executor, WIDE), judged(executor, NARROW)]
    built = libraries()
    found = []
    with closing(Service("tools.profile_server")) as server:
        for asked in turns:
            answer = server.ask(asked.model_dump_json().encode())
            found.append(Profile.model_validate_json(answer))
            time.sleep(10)  # as a turn's model and judge leave it
    first, second = found
    assert first.rung is second.rung is ProfilerTier.NCU, first.rung_reason
    assert libraries() == built, "the judge's library was not found"
    assert second.stages["start"] < 0.5
    assert second.bottleneck is Bottleneck.TOO_FEW_BLOCKS
    assert [kernel.name for kernel in second.kernels] == [KERNEL]
