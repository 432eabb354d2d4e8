from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from evaluator.collect.collected import Collected, CollectedKernel, KernelTrace
from evaluator.collect.ncu import NcuSession
from evaluator.errors import KernelEndedError, ProfilerError
from evaluator.evaluation import (
    Evaluation,
    EvaluationRequest,
    Status,
)
from tests.command import command, refused
from tests.evaluator.collect.stand_in_ncu import stand_in_gpu, stand_in_ncu
from tests.evaluator.made_evaluations import correct as made_correct
from tests.evaluator.made_requests import evaluation_request
from tests.evaluator.processes import still_running
from tests.task import as_candidate, task
from tools.advice.rules import advise
from tools.profile import MOST_BYTES, keep_report, prepare, profile
from tools.profiling.profile_report import ProfilerTier
from tools.profiling.profile_summary import MAX_LINES

REFERENCE = task(
    "return torch.tanh(x + self.bias)",
    init="self.bias = torch.nn.Parameter(torch.zeros(features))",
    sizes={"features": "4096"},
    x="torch.randn(256, 4096)",
)
LIBRARY = "# plan: the same again\n" + REFERENCE.replace("class Model(", "class ModelNew(")
SERIAL = '''# plan: one thread, one libm call for each element
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cmath>
torch::Tensor tanh_bias(torch::Tensor x, torch::Tensor bias) {
  auto y = torch::empty_like(x);
  const float* a = x.data_ptr<float>();
  const float* b = bias.data_ptr<float>();
  float* out = y.data_ptr<float>();
  const int64_t rows = x.size(0), columns = x.size(1);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      out[i * columns + j] = tanhf(a[i * columns + j] + b[j]);
  return y;
}
"""
ext = load_inline(
    name="tanh_bias_serial", cpp_sources=[source], functions=["tanh_bias"], extra_cflags=["-O2"]
)
'''
SERIAL += as_candidate(REFERENCE).replace(
    "torch.tanh(x + self.bias)", "ext.tanh_bias(x, self.bias)"
)


def request(source: str, **settings: object) -> EvaluationRequest:
    return evaluation_request(source, REFERENCE, **({"threads": 2} | settings))


def correct(latency_us: float = 1000.0) -> Evaluation:
    return made_correct(1.0, latency_us, bound_us=100.0)


@pytest.mark.thorough
def test_own_code_on_one_thread(tmp_path: Path) -> None:
    result = profile(request(SERIAL), correct(), keep=tmp_path / "kept")
    assert result.rung is ProfilerTier.CPU
    assert any(kernel.name == "tanh_bias" and kernel.own for kernel in result.kernels)
    assert result.sol_fraction == pytest.approx(0.1)
    assert {"start", "prepare", "build", "warm_up", "collect"} <= set(result.stages)
    inside = sum(seconds for name, seconds in result.stages.items() if name != "process")
    assert 0 < inside < result.stages["process"] < result.seconds
    assert "no_new_privs" in result.isolation
    lines = result.summary.splitlines()
    assert lines[0] == f"- bottleneck: {result.bottleneck}"
    assert len(lines) <= MAX_LINES
    assert "calls per element: tanhf" in result.summary
    assert result.figures["libm_calls"] == 1
    assert result.advice == advise(result.figures)
    # What is measured of time moves on a busy machine, and with it what is worth saying.
    quiet = result.figures | {"busy_threads": 1.0, "threads": 2.0, "wall_us": 9e3, "own_share": 0.9}
    assert {advice.rule for advice in advise(quiet)} == {"single_thread", "libm_calls"}
    kept = Collected.model_validate_json((tmp_path / "kept" / "collected.json").read_text())
    assert "no_new_privs" in kept.isolation
    assert kept.work is not None
    # Input, output and bias: each once.
    assert kept.work.bytes == 4 * (2 * 256 * 4096 + 4096)


def test_a_candidate_that_fails_costs_the_profile_only() -> None:
    broken = LIBRARY.replace("return torch.tanh", "raise ValueError('no luck')\n        return")
    with pytest.raises(KernelEndedError, match="ValueError: no luck"):
        profile(request(broken), correct())


def test_only_correct_kernels_are_profiled() -> None:
    evaluation = Evaluation(status=Status.RUNTIME_ERROR, reason="forward_raised", message="no")
    with pytest.raises(ProfilerError, match="runtime_error"):
        profile(request(LIBRARY), evaluation)


@pytest.mark.thorough
def test_library_operators_without_torch_in_the_callers_process(tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text(request(LIBRARY).model_dump_json())
    (tmp_path / "evaluation.json").write_text(correct().model_dump_json())
    code = (
        "import sys, pathlib\n"
        "from evaluator.evaluation import Evaluation, EvaluationRequest\n"
        "from tools.profile import profile\n"
        "from tools.diagnosis.diagnose import explain\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "request = EvaluationRequest.model_validate_json((folder / 'request.json').read_text())\n"
        "text = (folder / 'evaluation.json').read_text()\n"
        "result = profile(request, Evaluation.model_validate_json(text))\n"
        "print('torch' in sys.modules, result.bottleneck, result.kernels[0].own)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    has_torch, bottleneck, own = done.stdout.split()
    assert (has_torch, own) == ("False", "False")
    assert bottleneck in ("library", "redundant_traffic")  # the sum is a temporary


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.py", "--problem", "level1_7_rms_norm"],
        ["{kernel}", "--problem", "no_such_problem"],
        ["{kernel}", "--problem", "level1_7_rms_norm", "--device", "tpu"],
    ],
)
def test_command_line_wrong_usage(tmp_path: Path, arguments: list[str]) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(LIBRARY)
    refused("tools.profile", *(argument.format(kernel=kernel) for argument in arguments))


@pytest.mark.thorough
def test_command_line_prints_json(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(LIBRARY)
    (tmp_path / "problem.py").write_text(REFERENCE)
    words = ("--problem", tmp_path / "problem.py", "--device", "cpu", "--json")
    done = command("tools.profile", tmp_path / "kernel.py", *words)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    # On a busy machine what a call reaches of its bound, and so the bottleneck, is chance.
    assert (told["rung"], told["kernels"][0]["own"]) == ("cpu", False)


def test_a_kept_trace_replaces_an_older_one(tmp_path: Path) -> None:
    (tmp_path / "left").mkdir()
    for text in ("{}", "[]"):
        (tmp_path / "left" / "trace.json").write_text(text)
        keep_report(tmp_path / "left", Collected(), tmp_path / "run" / "profiles" / "hash")
        assert (tmp_path / "run" / "profiles" / "hash" / "trace.json").read_text() == text


def test_neither_links_nor_large_reports_are_kept(tmp_path: Path) -> None:
    left = tmp_path / "left"
    left.mkdir()
    (tmp_path / "secret").write_text("of another")
    (left / "trace.json").symlink_to(tmp_path / "secret")
    with (left / "profile.ncu-rep").open("wb") as report:
        report.truncate(MOST_BYTES + 1)
    keep_report(left, Collected(), tmp_path / "kept")
    assert not list((tmp_path / "kept").glob("[!c]*"))


def test_a_full_disk_costs_the_profile_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> Collected:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evaluator.collect.own_collectors.collect_own", full)
    with pytest.raises(ProfilerError, match="No space left"):
        profile(request(LIBRARY), correct())


def test_the_best_tier_that_works_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    session = NcuSession()

    def refuse(*arguments: object, **options: object) -> Collected:
        assert options["session"] is session
        raise ProfilerError("ncu is not installed")

    def trace(folder: Path, mode: str, **options: object) -> Collected:
        assert mode == "torch_trace"
        kernels = (
            CollectedKernel(name="own_k", launches=1, time_us=60.0, metrics={"registers": 24.0}),
            CollectedKernel(name="at::add", launches=1, time_us=20.0),
        )
        return Collected(gpu=KernelTrace(kernels=kernels))

    def confined(*arguments: object, **options: object) -> Collected:
        raise ProfilerError("torch.profiler saw no kernel")

    stand_in_gpu(monkeypatch)
    monkeypatch.setattr("evaluator.collect.ncu.collect_ncu", refuse)
    monkeypatch.setattr("evaluator.collect.own_collectors.collect_own", trace)
    asked = request("def own_k(): ...", device="cuda:0")
    result = profile(asked, correct(), session=session)
    assert not session._waiting
    assert result.rung is ProfilerTier.TORCH_TRACE
    assert result.rung_reason == "ncu is not installed"
    assert "no counters), because ncu is not installed" in result.summary
    assert [kernel.name for kernel in result.kernels if kernel.own] == ["own_k"]
    assert "24 registers a thread" in result.summary
    assert "| own_k | 75 % |" in result.summary
    monkeypatch.setattr("evaluator.collect.own_collectors.collect_own", confined)
    with pytest.raises(ProfilerError, match=r"installed; torch\.profiler saw no kernel$"):
        profile(asked, correct(), session=session)


@pytest.mark.parametrize("forged", [{}, {"gpu": {"kernels": []}}], ids=["nothing", "no_kernel"])
def test_what_a_process_left_and_nobody_can_read_is_the_kernels(
    forged: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def left(*arguments: object, **options: object) -> Collected:
        return Collected.model_validate(forged)

    monkeypatch.setattr("evaluator.collect.own_collectors.collect_own", left)
    with pytest.raises(KernelEndedError, match="cannot be read"):
        profile(request("..."), correct())


def test_a_name_stays_on_its_line() -> None:
    named = CollectedKernel(name="a\x1b[31m\n\n## What to do | \u202e", launches=1, time_us=1.0)
    assert named.name == "a [31m  ## What to do    "


def test_launches_that_were_not_counted_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(*arguments: object, **options: object) -> Collected:
        figures = {"dram_read_bytes": 100.0, "spill_requests": 10.0, "registers": 24.0}
        many = CollectedKernel(name="own_k", launches=4, time_us=80.0, metrics=figures)
        few = CollectedKernel(name="at::add", launches=3, time_us=90.0, metrics=figures)
        return Collected(gpu=KernelTrace(kernels=(few, many)))

    def trace(folder: Path, mode: str, **options: object) -> Collected:
        times_us = (8.0, 8.0, 8.0, 20.0, 16.0, 20.0, 20.0)
        kernels = (
            CollectedKernel(name="own_k", launches=7, time_us=100.0, durations_us=times_us),
            CollectedKernel(name="at::add", launches=3, time_us=9.0, durations_us=(3.0, 3.0, 3.0)),
        )
        return Collected(gpu=KernelTrace(kernels=kernels), seconds={"process": 2.0})

    stand_in_gpu(monkeypatch)
    monkeypatch.setattr("evaluator.collect.ncu.collect_ncu", counted)
    monkeypatch.setattr("evaluator.collect.own_collectors.collect_own", trace)
    result = profile(request("def own_k(): ...", device="cuda:0"), correct())
    assert (result.rung, result.stages["trace"]) == (ProfilerTier.NCU, 2.0)
    many, few = result.kernels
    assert (many.name, many.launches, many.time_us) == ("own_k", 7, pytest.approx(200.0))
    assert many.metrics["dram_read_bytes"] == pytest.approx(250.0)
    assert many.metrics["spill_requests"] == pytest.approx(25.0)
    assert many.metrics["registers"] == 24.0
    assert (few.launches, few.time_us, few.metrics["dram_read_bytes"]) == (3, 90.0, 100.0)


def test_what_the_first_profile_would_wait_for_is_started_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(tmp_path / "cache"))
    stand_in_gpu(monkeypatch)
    with closing(NcuSession()) as session:
        monkeypatch.setattr("evaluator.collect.ncu.find_tool", lambda name: None)
        prepare(session, "cuda:0")
        assert not session._waiting
        ncu = stand_in_ncu(tmp_path / "bin", tmp_path / "log", "sleep 300")
        monkeypatch.setattr("evaluator.collect.ncu.find_tool", lambda name: str(ncu))
        prepare(session, "cpu")
        assert not session._waiting
        prepare(session, "cuda:0")
        ahead = session._waiting["cuda:0"].target.pid
    assert not still_running([ahead])
