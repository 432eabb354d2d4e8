"""The candidate under NVIDIA's compute-sanitizer: memcheck, racecheck, initcheck, synccheck."""

from __future__ import annotations

import re
import tempfile
import time
from contextlib import closing
from pathlib import Path

from evaluator.audit_record import SanitizerRun, Tool
from evaluator.builder.toolchain import find_tool
from evaluator.collect.target.broker import Broker, Ended, never
from evaluator.collect.target.target import Target, write_request
from evaluator.deep_audit.compiled_text import with_lines
from evaluator.deep_audit.compute_report import (
    assertion_findings,
    counts_errors,
    ended_properly,
    findings_of,
)
from evaluator.deep_audit.own_code import OwnCode
from evaluator.errors import AuditEndedError, InfrastructureError
from evaluator.evaluation import EvaluationRequest
from evaluator.judge.context.problem_context import ProblemContext

TOOLS = (Tool.MEMCHECK, Tool.RACECHECK, Tool.INITCHECK, Tool.SYNCCHECK)
SANITIZERS_S = 40.0
"""For all tools of an audit together."""
_LEAST_S = 1.0
_LARGE_BYTES = 256 * 2**20
"""Of inputs and outputs, from which on a tool may take minutes over one call."""
_PYTORCH = "at6native"
"""A part of the mangled names of PyTorch's own kernels."""
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
    limit_s: float = SANITIZERS_S,
    ended: Ended = never,
    runs: list[SanitizerRun] | None = None,
) -> list[SanitizerRun]:
    """One record for each tool, each over a process of its own; `limit_s` is for all of them.

    The candidate runs behind walls, and after the verdict. `runs`: what there is of the first tools
    already, to which the others are added. Raises nothing but `AuditEndedError`.
    """
    runs = [] if runs is None else runs
    program = find_tool("compute-sanitizer")
    reason = "" if code.exists else "the candidate compiles nothing"
    if program is None:
        reason = "compute-sanitizer is not installed: it comes with the CUDA toolkit"
    for tool in tools[len(runs) :]:
        if ended():
            raise AuditEndedError("a turn came")
        left_s = limit_s - sum(run.seconds for run in runs)
        if program is None or reason or left_s < _LEAST_S:
            note = reason or f"nothing was left of the {limit_s:.3g} s for all tools"
            runs.append(SanitizerRun(tool=tool, outcome="not_run", note=note))
            continue
        run = _watch(program, tool, request, code, left_s, ended)
        if run.outcome == "inconclusive" and ended():
            raise AuditEndedError("a turn came")
        runs.append(run)
    return runs


def at_moderate_sizes(request: EvaluationRequest, context: ProblemContext) -> EvaluationRequest:
    """The request, where its tensors are large at the problem's smallest hidden sizes, at which the
    candidate is right as well."""
    hidden = dict(
        zip(request.hidden_references, context.hidden(request.hidden_references), strict=True)
    )

    def size(reference: str) -> int:
        each = hidden.get(reference, context)
        return each.draws.arena.bytes.numel() + each.facts.output_bytes

    if size(request.reference) <= _LARGE_BYTES:
        return request
    return request.model_copy(update={"reference": min([request.reference, *hidden], key=size)})


def _watch(
    program: str,
    tool: Tool,
    request: EvaluationRequest,
    code: OwnCode,
    timeout_s: float,
    ended: Ended,
) -> SanitizerRun:
    begin, text, note = time.monotonic(), "", ""
    try:
        with (
            tempfile.TemporaryDirectory(prefix="refinery-audit-") as name,
            Broker(request.settings.device, ended=ended) as broker,
            closing(Target("plain", command(program, tool, code), _ENVIRONMENT)) as target,
        ):
            folder = Path(name)
            write_request(folder, request)
            text = target.watch(folder, broker, timeout_s=timeout_s, whole=True, may_fail=True)
    except (InfrastructureError, OSError) as error:
        note = str(error)
    plain = not _OTHER_BARRIERS.search(request.candidate.source)
    found = findings_of(tool, text, code, plain_barriers=plain)
    if tool is Tool.MEMCHECK:
        found += assertion_findings(text)
    findings = tuple(with_lines(each, code.texts) for each in found)
    note = note or ("" if ended_properly(text) else "the tool printed no summary")
    if not note and not findings and counts_errors(text):
        note = "the tool counted errors of which none can be read"
    return SanitizerRun(
        tool=tool,
        outcome="findings" if findings else "inconclusive" if note else "clean",
        note=note,
        findings=findings,
        calls=0 if note else 1,  # so many as `evaluator.collect.target.run` makes
        seconds=time.monotonic() - begin,
    )


def command(program: str, tool: Tool, code: OwnCode) -> list[str]:
    options = ["--tool", tool, "--target-processes", "all", "--print-limit", str(_MOST_ERRORS)]
    if tool is Tool.MEMCHECK:
        # PyTorch asks things of the driver that may well be answered with an error.
        options += ["--report-api-errors", "no"]
        # Allocations lie side by side: without a gap, one beyond the end of one is in the next.
        options += ["--padding", str(_PADDING_BYTES)]
    # PyTorch's kernels make the inputs. Only errors in kernels that the candidate's libraries name
    # refuse, so nothing escapes by a name, and with one of theirs like PyTorch's all are watched.
    # initcheck has to see who writes.
    like_pytorchs = any("at::native" in name or _PYTORCH in name for name in code.kernels)
    if tool is not Tool.INITCHECK and code.known and not like_pytorchs:
        options += ["--kernel-name-exclude", f"kernel_substring=_ZN2{_PYTORCH}"]
    return [program, *options]
