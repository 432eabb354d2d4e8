"""The candidate under NVIDIA's compute-sanitizer: memcheck, racecheck, initcheck, synccheck."""

from __future__ import annotations

import re
import tempfile
import time
from contextlib import closing
from pathlib import Path

from evaluator.audit_record import SanitizerRun, Tool
from evaluator.builder.toolchain import find_tool
from evaluator.collect.target.broker import Broker
from evaluator.collect.target.target import Target
from evaluator.collect.target.target_request import write_request
from evaluator.deep_audit.compiled_text import with_lines
from evaluator.deep_audit.compute_report import (
    assertion_findings,
    counts_errors,
    ended_properly,
    findings_of,
)
from evaluator.deep_audit.own_code import OwnCode
from evaluator.errors import InfrastructureError
from evaluator.evaluation import EvaluationRequest

TOOLS = (Tool.MEMCHECK, Tool.RACECHECK, Tool.INITCHECK, Tool.SYNCCHECK)
_CALLS = 1
"""That `evaluator.collect.target.run` makes."""
_TIMEOUT_S = 120.0
"""For each tool."""
_MOST_ERRORS = 100
_OTHER_BARRIERS = re.compile(
    r"\basm\b|cooperative_groups|\bcg::|cuda::|\bcub::|mbarrier|__pipeline_|wgmma|\bvolatile\b|"
    r"__threadfence|@triton\b"
)
"""Ways to order threads that racecheck does not know, or what hides them."""
_ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
"""Each tensor is a block of its own, whose bounds are known."""
_PADDING_BYTES = 4096


def run_compute_sanitizer(
    request: EvaluationRequest,
    code: OwnCode,
    *,
    tools: tuple[Tool, ...] = TOOLS,
    timeout_s: float = _TIMEOUT_S,
) -> list[SanitizerRun]:
    """One record for each tool, each over a process of its own. Nothing is raised.

    The candidate runs behind walls, and after the verdict. `timeout_s` is for each tool.
    """
    program = find_tool("compute-sanitizer")
    if program is not None and code.exists:
        return [_watch(program, tool, request, code, timeout_s) for tool in tools]
    reason = "the candidate compiles nothing"
    if program is None:
        reason = "compute-sanitizer is not installed: it comes with the CUDA toolkit"
    return [SanitizerRun(tool=tool, outcome="not_run", note=reason) for tool in tools]


def _watch(
    program: str, tool: Tool, request: EvaluationRequest, code: OwnCode, timeout_s: float
) -> SanitizerRun:
    begin = time.monotonic()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="refinery-audit-") as name,
            Broker(request.settings.device) as broker,
            closing(Target("plain", command(program, tool), _ENVIRONMENT)) as target,
        ):
            folder = Path(name)
            write_request(folder, request)
            text = target.watch(folder, broker, timeout_s=timeout_s, whole=True, may_fail=True)
    except (InfrastructureError, OSError) as error:
        return SanitizerRun(
            tool=tool,
            outcome="inconclusive",
            note=str(error),
            seconds=time.monotonic() - begin,
        )
    plain = not _OTHER_BARRIERS.search(request.candidate.source)
    found = findings_of(tool, text, code, plain_barriers=plain)
    if tool is Tool.MEMCHECK:
        found += assertion_findings(text)
    findings = tuple(with_lines(each, code.texts) for each in found)
    note = "" if ended_properly(text) else "the tool printed no summary"
    if not note and not findings and counts_errors(text):
        note = "the tool counted errors of which none can be read"
    return SanitizerRun(
        tool=tool,
        outcome="findings" if findings else "inconclusive" if note else "clean",
        note=note,
        findings=findings,
        calls=0 if note else _CALLS,
        seconds=time.monotonic() - begin,
    )


def command(program: str, tool: Tool) -> list[str]:
    options = ["--tool", tool, "--target-processes", "all", "--print-limit", str(_MOST_ERRORS)]
    if tool is Tool.MEMCHECK:
        # PyTorch asks things of the driver that may well be answered with an error.
        options += ["--report-api-errors", "no"]
        # Allocations lie side by side: without a gap, one beyond the end of one is in the next.
        options += ["--padding", str(_PADDING_BYTES)]
    return [program, *options]
