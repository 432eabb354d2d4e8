"""A second look at a candidate whose process crashed, under a tool that says where.

It comes after the verdict and never changes it: the finding is reported beside it.
"""

from __future__ import annotations

import math
import re
import time

from evaluator.audit_record import DeepAudit, Finding, SanitizerRun, Tool
from evaluator.builder.builder import Builder
from evaluator.deep_audit.address_sanitizer import AddressSanitizer
from evaluator.deep_audit.compute_sanitizer import run_compute_sanitizer
from evaluator.deep_audit.own_code import built_code
from evaluator.errors import AuditEndedError, InfrastructureError
from evaluator.evaluation import Evaluation, EvaluationRequest
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.judge import Judge
from evaluator.judge.problem.reference import flatten_arguments
from evaluator.worker.values import dtype_name

LIMIT_S = 30.0
"""For all of it on a CPU, but for the start of the sanitizers' zygote, which is there once."""
GPU_LIMIT_S = 60.0
_BLOCK = re.compile(
    r"(?P<bytes>[\d,]+)-byte region|allocation at \S+ of size (?P<size>[\d,]+) bytes"
)
_MOST_NAMES = 3


def with_crash_look(
    judge: Judge,
    builder: Builder,
    address: AddressSanitizer,
    request: EvaluationRequest,
    evaluation: Evaluation,
) -> Evaluation:
    """The evaluation with what a tool found. A note says what failed. Raises `AuditEndedError`."""
    begin = time.monotonic()
    runs: list[SanitizerRun] = []
    notes = evaluation.notes
    try:
        runs = _runs(judge, builder, address, request)
    except AuditEndedError:
        raise
    except InfrastructureError as error:
        notes = (*notes, f"the crash was not looked into: {error}")
    seconds = time.monotonic() - begin
    update = {
        "audit": DeepAudit(occasion="crash", sanitizers=tuple(runs), seconds=seconds),
        "notes": notes,
        "seconds": evaluation.seconds.model_copy(update={"audit": seconds}),
    }
    return evaluation.model_copy(update=update)


def _runs(
    judge: Judge, builder: Builder, address: AddressSanitizer, request: EvaluationRequest
) -> list[SanitizerRun]:
    on_cpu = request.settings.device == "cpu"
    with judge.holding(request.settings.device):
        context = judge.context_for(request)
        sizes = _sizes(context)
        deadline = time.monotonic() + GPU_LIMIT_S
        if on_cpu:
            runs = address.run(context, request, compiles=True, limit_s=LIMIT_S)
        else:
            code = built_code(context, builder, request, limit_s=GPU_LIMIT_S)
    if not on_cpu:
        # It takes the device itself when it needs it.
        left_s = max(0.0, deadline - time.monotonic())
        runs = run_compute_sanitizer(request, code, tools=(Tool.MEMCHECK,), limit_s=left_s)
    return [_with_blocks(run, sizes) for run in runs]


def _with_blocks(run: SanitizerRun, sizes: dict[int, list[str]]) -> SanitizerRun:

    def named(finding: Finding) -> Finding:
        match = _BLOCK.search(finding.text)
        size = int((match["bytes"] or match["size"]).replace(",", "")) if match else -1
        if size not in sizes:
            return finding
        text = f"{finding.text}; as large as {', '.join(sizes[size][:_MOST_NAMES])}"
        return finding.model_copy(update={"text": text})

    return run.model_copy(update={"findings": tuple(named(each) for each in run.findings)})


def _sizes(context: ProblemContext) -> dict[int, list[str]]:
    """By their bytes, the tensors that the author of a candidate knows of."""
    inputs = flatten_arguments(context.draws.values_of(context.draws.plain()))
    named = {f"input {n}": each for n, each in enumerate(inputs)}
    named |= {f"output {n}": each for n, each in enumerate(context.facts.outputs)}
    named |= context.reference.seeded
    names: dict[int, list[str]] = {}
    for name, tensor in named.items():
        size = math.prod(tensor.shape) * tensor.element_size()
        words = f"{name} ({dtype_name(tensor.dtype)} {list(tensor.shape)})"
        names.setdefault(size, []).append(words)
    return names
