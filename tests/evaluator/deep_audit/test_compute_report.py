"""Texts in the format that compute-sanitizer documents."""

from __future__ import annotations

import time

import pytest

from evaluator.audit_record import Finding, Tool
from evaluator.deep_audit.compute_report import assertion_findings, ended_properly, findings_of
from evaluator.deep_audit.own_code import OwnCode

CODE = OwnCode(libraries=1, kernels=frozenset({"scale_kernel", "sums::reduce_kernel"}))
MEMCHECK = """\
========= COMPUTE-SANITIZER
plain output of the program
========= Invalid __global__ write of size 4 bytes
=========     at scale_kernel(float *, int)+0x70 in /tmp/work/cuda.cu:12
=========     by thread (255,0,0) in block (3,0,0)
=========     Access at 0x7f1203fffffc is out of bounds
=========     and is 4 bytes after the nearest allocation at 0x7f1203c00000 of size 4,096 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: [0x2f0a7] in libcuda.so.1
=========
========= Invalid __global__ write of size 4 bytes
=========     at scale_kernel(float *, int)+0x70 in /tmp/work/cuda.cu:12
=========     by thread (254,0,0) in block (3,0,0)
=========     Access at 0x7f1203fffff8 is out of bounds
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure"
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 2 errors
"""
LIBRARY = """\
========= Invalid __global__ read of size 16 bytes
=========     at void at::native::vectorized_elementwise_kernel<(int)4>(int)+0x1f0
=========     by thread (0,0,0) in block (0,0,0)
========= ERROR SUMMARY: 1 error
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at scale_kernel(float *, int)+0x90 in a.cu:20
=========     and Read access at scale_kernel(float *, int)+0xd0 in a.cu:23 [508 hazards]
=========
========= Warning: Race reported between Write access at scale_kernel(float *, int)+0x30 in a.cu:9
=========     and Write access at scale_kernel(float *, int)+0x30 in a.cu:9 [31 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""
INITCHECK = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at scale_kernel(float *, int)+0x60 in a.cu:7
=========     by thread (31,0,0) in block (0,0,0)
=========     Address 0x7f0880000200
=========
========= ERROR SUMMARY: 1 error
"""
SYNCCHECK = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block
=========     at scale_kernel(float *, int)+0x210 in a.cu:32
=========     by thread (32,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""
IN_A_FUNCTION = """\
========= Invalid __global__ read of size 4 bytes
=========     at load_tile(const float *)+0x176b0 in tile.cuh:1732
=========     by thread (1,0,0) in block (0,0,0)
=========     Access to 0xe7756ae00fa0 is out of bounds
=========     Device Frame: void sums::reduce_kernel<(int)256>(float const*)+0x10640 in a.cu:21
=========     Saved host backtrace up to driver entry point at kernel launch time
"""
CLEAN = "========= COMPUTE-SANITIZER\nfine\n========= ERROR SUMMARY: 0 errors\n"
NOT_STARTED = (
    "========= COMPUTE-SANITIZER\n========= Error: No attachable process found. compute-sanitizer "
    "timed-out.\n"
)


def only(tool: Tool, text: str) -> Finding:
    (finding,) = findings_of(tool, text, CODE)
    return finding


def test_memcheck_says_what_and_where_once() -> None:
    finding = only(Tool.MEMCHECK, MEMCHECK)
    assert finding.kind == "Invalid __global__ write of size 4 bytes"
    assert (finding.place, finding.frames) == ("cuda.cu:12", ("scale_kernel",))
    assert "4 bytes after the nearest allocation at ... of size 4,096 bytes" in finding.text
    assert finding.refuses and "0x" not in str(finding)


ASSERTION = """\
cuda.cu:14: void scale_kernel<float>(const float *, int): block: [2,0,0], thread: [31,0,0] Assertion `i < n` failed.
cuda.cu:14: void scale_kernel<float>(const float *, int): block: [2,0,0], thread: [32,0,0] Assertion `i < n` failed.
========= COMPUTE-SANITIZER
========= ERROR SUMMARY: 0 errors
"""  # noqa: E501


def test_a_kernels_own_assertion_is_told_once() -> None:
    (finding,) = assertion_findings(ASSERTION)
    assert (finding.kind, finding.place) == ("device-side assert", "cuda.cu:14")
    assert finding.text == "`i < n` failed; by thread (31,0,0) in block (2,0,0)"
    assert finding.frames == ("scale_kernel",) and not finding.refuses


@pytest.mark.parametrize(
    ("tool", "text", "place", "frames", "refuses"),
    [
        # A library's kernel refuses nobody.
        (Tool.MEMCHECK, LIBRARY, "", ("at::native::vectorized_elementwise_kernel",), False),
        # A function that a kernel of its own calls is its own.
        (
            *(Tool.MEMCHECK, IN_A_FUNCTION, "tile.cuh:1732"),
            *(("load_tile", "sums::reduce_kernel"), True),
        ),
        # The others only tell.
        (Tool.INITCHECK, INITCHECK, "a.cu:7", ("scale_kernel",), False),
        (Tool.SYNCCHECK, SYNCCHECK, "a.cu:32", ("scale_kernel",), False),
    ],
)
def test_whose_kernel_it_is_decides(
    tool: Tool, text: str, place: str, frames: tuple[str, ...], refuses: bool
) -> None:
    finding = only(tool, text)
    assert (finding.place, finding.frames, finding.refuses) == (place, frames, refuses)


def test_races_refuse_and_harmless_ones_tell() -> None:
    error, warning = findings_of(Tool.RACECHECK, RACECHECK, CODE)
    assert (error.kind, error.place) == ("Race reported between Write access", "a.cu:20")
    assert error.refuses and "[508 hazards]" in error.text
    assert warning.place == "a.cu:9" and not warning.refuses


def test_races_only_tell_where_the_tool_does_not_know_the_barriers() -> None:
    findings = findings_of(Tool.RACECHECK, RACECHECK, CODE, plain_barriers=False)
    assert len(findings) == 2 and not any(finding.refuses for finding in findings)


@pytest.mark.parametrize("text", [CLEAN, NOT_STARTED, "", "=========\n========= \n"])
def test_nothing_is_found_where_nothing_was(text: str) -> None:
    assert findings_of(Tool.MEMCHECK, text, CODE) == ()


def test_silence_without_a_summary_means_nothing() -> None:
    assert ended_properly(CLEAN) and ended_properly(RACECHECK)
    assert not ended_properly(NOT_STARTED)
    assert not ended_properly("========= Internal Sanitizer Error: oh\n" + CLEAN)


def test_no_line_takes_for_ever():
    began = time.monotonic()
    findings_of(Tool.MEMCHECK, "========= Invalid " + "at " * 100_000, OwnCode())
    assertion_findings("a:1: k" + ": block: [1], thread: [1] Assertion `x" * 10_000)
    assert time.monotonic() - began < 5.0
