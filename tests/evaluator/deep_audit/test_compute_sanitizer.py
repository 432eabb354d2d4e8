from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evaluator.audit_record import Provenance, SanitizerRun, Tool
from evaluator.builder import toolchain
from evaluator.deep_audit.compute_sanitizer import (
    at_moderate_sizes,
    command,
    run_compute_sanitizer,
)
from evaluator.deep_audit.own_code import OwnCode
from evaluator.errors import AuditEndedError, DeviceError
from evaluator.evaluation import Backend, EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from tests.evaluator.made_requests import evaluation_request, forward

_HEAD = '''
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void scale_kernel(const float* x, const float* scale, const float* bias, float* y,
                             long rows, long columns) {
  __shared__ float seen[256];
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  seen[threadIdx.x] = i < rows * columns ? x[i] : scale[columns + TOO_FAR];
  BARRIER
  float other = seen[255 - threadIdx.x];
  if (i >= rows * columns) return;
  float value = (x[i] + 0.0f * other) * scale[i % columns] + bias[i % columns];
  y[i] = value > 0 ? 2.0f * value : 0.0f;
}
torch::Tensor run(torch::Tensor x, torch::Tensor scale, torch::Tensor bias) {
  auto y = torch::empty_like(x);
  long n = x.numel();
  scale_kernel<<<n / 256 + 1, 256>>>(x.data_ptr<float>(), scale.data_ptr<float>(),
      bias.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1));
  return y;
}
"""
kernels = load_inline("kernels", "torch::Tensor run(torch::Tensor, torch::Tensor, torch::Tensor);",
                      source, functions=["run"])
'''
KERNEL = forward("return kernels.run(x, self.scale, self.bias)", _HEAD)


def request(source: str, **settings: object) -> EvaluationRequest:
    chosen = {"device": "cuda:0", "timing_seconds": 0.5, "audit": "always"} | settings
    return evaluation_request(source, backend=Backend.CUDA, **chosen)


def test_options_of_the_tools() -> None:
    made = command("/opt/compute-sanitizer", Tool.RACECHECK, CODE)
    assert made[:3] == ["/opt/compute-sanitizer", "--tool", "racecheck"]
    assert "--report-api-errors" not in made
    watched = command("/x", Tool.MEMCHECK, CODE)
    assert "--report-api-errors" in watched and "--padding" in watched


@pytest.mark.parametrize(
    ("tool", "code", "all_are_watched"),
    [
        (Tool.MEMCHECK, OwnCode(1, frozenset({"scale_kernel"})), False),
        (Tool.RACECHECK, OwnCode(1, frozenset({"scale_kernel"})), False),
        # Who takes a name of PyTorch's, or hides his, is watched all the same.
        (Tool.RACECHECK, OwnCode(1, frozenset({"at::native::mine"})), True),
        (Tool.MEMCHECK, OwnCode(1, frozenset({"_ZN2at6native_but_mine"})), True),
        (Tool.MEMCHECK, OwnCode(1, known=False), True),
        # What PyTorch writes is initialised.
        (Tool.INITCHECK, OwnCode(1, frozenset({"scale_kernel"})), True),
    ],
)
def test_pytorchs_own_kernels_are_not_watched(tool, code, all_are_watched) -> None:
    assert ("--kernel-name-exclude" not in command("/x", tool, code)) == all_are_watched


def test_large_problems_are_watched_at_their_smallest_hidden_sizes() -> None:
    def context(size: int, *hidden: object) -> Any:
        arena = SimpleNamespace(bytes=torch.empty(size, dtype=torch.uint8, device="meta"))
        facts = SimpleNamespace(output_bytes=size)
        draws = SimpleNamespace(arena=arena)
        return SimpleNamespace(draws=draws, facts=facts, hidden=lambda _: hidden)

    asked = request(KERNEL).model_copy(update={"hidden_references": ("more", "less")})
    hidden = context(2**24), context(2**20)
    assert at_moderate_sizes(asked, context(2**26, *hidden)) == asked
    assert at_moderate_sizes(asked, context(2**28, *hidden)).reference == "less"


def test_a_tool_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(toolchain, "TOOLKIT", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    runs = run_compute_sanitizer(request(KERNEL), OwnCode(libraries=1))
    assert [run.outcome for run in runs] == ["not_run"] * 4
    assert all("not installed" in run.note for run in runs)


CODE = OwnCode(libraries=1, kernels=frozenset({"scale_kernel"}))
ERROR = """\
========= Invalid __global__ read of size 4 bytes
=========     at scale_kernel(float const*)+0x70
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a shell script the program of the tool's name."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    # Another user will start it.
    tmp_path.chmod(0o755)

    def made(script: str) -> None:
        program = tmp_path / "compute-sanitizer"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    return made


def test_what_the_tool_prints_is_read(stand_in: Callable[[str], None]) -> None:
    stand_in(f"printf '{ERROR}========= ERROR SUMMARY: 1 error'; exit 1")
    runs = run_compute_sanitizer(request(KERNEL), CODE)
    assert [run.outcome for run in runs] == ["findings"] * 4
    refusing = {run.tool for run in runs if any(finding.refuses for finding in run.findings)}
    assert refusing == {Tool.MEMCHECK, Tool.RACECHECK}
    for printed, outcome in (
        ("========= ERROR SUMMARY: 0 errors", "clean"),
        ("Segmentation fault", "inconclusive"),
    ):
        stand_in(f"echo '{printed}'; exit 1")
        (run,) = run_compute_sanitizer(request(KERNEL), CODE, tools=(Tool.MEMCHECK,))
        assert run.outcome == outcome


@pytest.mark.parametrize(
    "act",
    [
        f"cat found; head -c {2**24} /dev/zero; echo '========= ERROR SUMMARY: 1 error'",
        "printf x; cat found; echo '========= ERROR SUMMARY: 1 error'",
        "echo '========= ERROR SUMMARY: 0 errors'; kill -9 $$",
    ],
    ids=["drowned", "joined", "killed"],
)
def test_who_hides_what_the_tool_found_is_not_clean(
    act: str, stand_in: Callable[[str], None]
) -> None:
    stand_in(f"printf '{ERROR}' > found\n{act}")
    (run,) = run_compute_sanitizer(request(KERNEL), CODE, tools=(Tool.MEMCHECK,))
    assert run.outcome == "inconclusive", run


def test_a_turn_ends_the_tool_in_hand_and_no_other_runs_again(
    stand_in: Callable[[str], None],
) -> None:
    stand_in(
        "case \"$*\" in *racecheck*) sleep 600;; esac\necho '========= ERROR SUMMARY: 0 errors'"
    )
    runs: list[SanitizerRun] = []
    looks = itertools.count()

    def ended() -> bool:
        return bool(runs) and next(looks) > 2

    with pytest.raises(AuditEndedError):
        run_compute_sanitizer(request(KERNEL), CODE, limit_s=1000.0, ended=ended, runs=runs)
    assert [(run.tool, run.outcome) for run in runs] == [(Tool.MEMCHECK, "clean")]
    stand_in(f"printf '{ERROR}========= ERROR SUMMARY: 1 error'; exit 1")
    run_compute_sanitizer(request(KERNEL), CODE, runs=runs)
    assert [run.outcome for run in runs] == ["clean", "findings", "findings", "findings"]


def test_the_tools_share_their_time(stand_in: Callable[[str], None]) -> None:
    stand_in("sleep 1; echo '========= ERROR SUMMARY: 0 errors'")
    _, *others = run_compute_sanitizer(request(KERNEL), CODE, limit_s=1.5)
    assert [run.outcome for run in others] == ["not_run"] * 3
    assert {run.note for run in others} == {"nothing was left of the 1.5 s for all tools"}


@pytest.mark.parametrize("failure", [DeviceError("no such device"), OSError("no such device")])
def test_a_tool_that_the_judge_fails_leaves_what_another_found(
    failure: Exception, monkeypatch: pytest.MonkeyPatch, stand_in: Callable[[str], None]
) -> None:
    def no_lock(device: str) -> None:
        raise failure

    monkeypatch.setattr("evaluator.collect.target.broker.device_lock", no_lock)
    # The second one asks for the device, as every target does.
    found = f"{ERROR}========= ERROR SUMMARY: 1 error"
    stand_in(
        f"case \"$*\" in *memcheck*) printf '{found}'; exit 1;; esac\n"
        f'while [ "$1" != {sys.executable} ]; do shift; done\nexec "$@"'
    )
    tools = (Tool.MEMCHECK, Tool.RACECHECK)
    first, second = run_compute_sanitizer(request(KERNEL), CODE, tools=tools)
    assert [finding.refuses for finding in first.findings] == [True]
    assert (second.outcome, second.note) == ("inconclusive", "no such device")


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("barrier", "too_far", "reason"),
    [
        ("__syncthreads();", "-1", ""),
        # Without any wait its outputs are wrong now and then.
        ("__nanosleep(20000);", "-1", "race"),
        ("__syncthreads();", "1", "memory_error"),
    ],
)
def test_the_real_tools_on_a_gpu(barrier: str, too_far: str, reason: str) -> None:
    if toolchain.find_tool("compute-sanitizer") is None:
        pytest.fail("compute-sanitizer is not installed: it comes with the CUDA toolkit")
    source = re.sub("TOO_FAR", too_far, KERNEL.replace("BARRIER", barrier))
    with LocalExecutor("cuda:0") as executor:
        evaluation = executor.evaluate(request(source))
    assert evaluation.reason == reason, evaluation.message
    assert evaluation.provenance is Provenance.CUSTOM
    assert (evaluation.status is Status.CORRECT) == (not reason)
