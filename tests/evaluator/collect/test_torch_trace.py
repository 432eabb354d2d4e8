from __future__ import annotations

import pytest

from evaluator.collect.torch_trace import device_timeline, parse_trace
from evaluator.errors import ProfilerError


def event(name: str, cat: str, ts: float, dur: float, **facts: object) -> dict[str, object]:
    return {"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur, "args": facts}


def test_only_the_last_marked_call_counts() -> None:
    facts = {"grid": [64, 2, 1], "block": [256, 1, 1], "registers per thread": 40}
    collected = parse_trace(
        {
            "traceEvents": [
                event("refinery_forward", "user_annotation", 0, 50),
                event("k(float*)", "kernel", 10, 99),
                event("refinery_forward", "user_annotation", 100, 50),
                event("k(float*)", "kernel", 130, 5, **facts),
                event("k(float*)", "kernel", 110, 15, **facts),
                event("Memset (Device)", "gpu_memset", 140, 2),
                event("aten::add", "cpu_op", 141, 2),
                {"ph": "i", "name": "instant", "ts": 142},
            ]
        },
        sm_count=132,
    )
    trace = collected.gpu
    assert trace is not None
    kernel, memset = trace.kernels
    assert (kernel.name, kernel.launches, kernel.time_us) == ("k", 2, 20)
    assert kernel.durations_us == (15, 5)
    assert kernel.metrics["grid"] == 128
    assert kernel.metrics["registers"] == 40
    assert kernel.metrics["sm_count"] == 132
    assert (memset.name, memset.metrics["grid"]) == ("Memset (Device)", None)
    assert trace.span_us == 32
    assert trace.busy_us == 22
    assert trace.launches == 3
    assert "dram_pct" in trace.missing
    assert collected.timeline is not None
    assert (collected.timeline.kernels, collected.timeline.kernels_us) == (2, 20)


def test_gaps_and_what_the_host_did_in_them() -> None:
    timeline = device_timeline(
        [
            event("k(float*)", "kernel", 10, 10),
            event("Memcpy DtoD (Device -> Device)", "gpu_memcpy", 15, 10),
            event("cudaMalloc", "cuda_runtime", 22, 13),
            event("cudaLaunchKernel", "cuda_runtime", 36, 3),
            event("cudaDeviceSynchronize", "cuda_runtime", 20, 90),
            event("aten::add", "cpu_op", 20, 30),
            event("k(float*)", "kernel", 40, 8),
            event("Memset (Device)", "gpu_memset", 48, 2),
        ]
    )
    assert (timeline.kernels, timeline.kernels_us) == (2, 18)
    assert [(o.name, o.launches, o.time_us) for o in timeline.others] == [
        ("Memcpy DtoD (Device -> Device)", 1, 10),
        ("Memset (Device)", 1, 2),
    ]
    assert (timeline.span_us, timeline.gaps_us) == (40, 15)
    # Of the 13 us of cudaMalloc, 10 lie between the copy and the second kernel.
    assert (timeline.host_call, timeline.host_call_us) == ("cudaMalloc", 10)


def test_no_kernel_is_an_error_of_the_profiler() -> None:
    with pytest.raises(ProfilerError):
        parse_trace({"traceEvents": [event("aten::add", "cpu_op", 1, 2)]}, sm_count=1)
