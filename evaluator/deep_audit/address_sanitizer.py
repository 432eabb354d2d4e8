"""The candidate once more, built with AddressSanitizer and UndefinedBehaviorSanitizer.

The runtimes have to be in a process before anything else, and PyTorch is not built with them. So
they are preloaded into a zygote of its own, and the candidate's library alone is instrumented. Its
inputs are copied into heap blocks, which have guarded bounds; parameters lie in such blocks anyway.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path

from evaluator.audit_record import Finding, SanitizerRun, Tool
from evaluator.builder.builder import Builder
from evaluator.builder.toolchain import cxx_compiler, printed_by
from evaluator.collect.target.broker import Ended, never
from evaluator.deep_audit.address_report import memory_finding, undefined_findings
from evaluator.deep_audit.compiled_text import compiled_texts, with_lines
from evaluator.errors import AuditEndedError, InfrastructureError
from evaluator.evaluation import Backend, EvaluationRequest, Status
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.judge.context.construction import Construction
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers.allowance import Allowance
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.judge.workers.process import WorkerLimits, WorkerProcess
from evaluator.judge.workers.zygote import Zygote

_CALLS = 3
_SLOWER = 10.0
"""How much longer than otherwise a call may take: instrumented code is that slow."""
_CPU_SECONDS = 1800
_LEAST_S = 0.01
_LOOK_S = 0.2
_OPTIONS = {
    # PyTorch and Python are not instrumented: what they leave behind is none of our business.
    "detect_leaks": 0,
    "detect_odr_violation": 0,
    "detect_container_overflow": 0,
    "alloc_dealloc_mismatch": 0,
    "new_delete_type_mismatch": 0,
    "allocator_may_return_null": 1,
    # Not the worker's own handler, which would report less.
    "handle_segv": 2,
    "handle_sigbus": 2,
    "handle_sigfpe": 2,
    "handle_sigill": 2,
    # An uncaught exception leaves its stack.
    "handle_abort": 2,
    "malloc_context_size": 8,
    "print_legend": 0,
    "stack_trace_format": '"    #%n %f %S"',
}


class AddressSanitizer:
    def __init__(self, builder: Builder, ended: Ended = never) -> None:
        """`ended`: whether what runs is to be cut off, without a record."""
        self._builder = builder
        self._ended = ended
        self._zygote: Zygote | None = None

    def run(
        self,
        context: ProblemContext,
        request: EvaluationRequest,
        *,
        compiles: bool,
        limit_s: float = math.inf,
    ) -> list[SanitizerRun]:
        """One record for each of the two tools, over the problem's sizes and its hidden ones.

        `compiles`: whether the candidate has libraries at all. `limit_s` bounds all of it but the
        start of the zygote, which is there once. What can't be run is reported; raises nothing but
        `AuditEndedError`.
        """
        begin = time.monotonic()
        reason = _why_not(request, compiles=compiles)
        seen = _Seen()
        if not reason:
            try:
                zygote = self._started()
                seen.deadline = time.monotonic() + limit_s
                # The hidden sizes take time to set up, and only come if need be.
                for each in chain([context], context.hidden(request.hidden_references)):
                    if self._ended():
                        raise AuditEndedError("a turn came")
                    self._watch(zygote, each, request, seen)
                    if seen.note:
                        break
            except AuditEndedError:
                raise
            except InfrastructureError as error:
                reason = str(error) or type(error).__name__
        if seen.note and self._ended():
            raise AuditEndedError("a turn came")
        if reason and not seen.calls:
            tools = (Tool.ADDRESS, Tool.UNDEFINED)
            return [SanitizerRun(tool=tool, outcome="not_run", note=reason) for tool in tools]
        return seen.records(time.monotonic() - begin)

    def close(self) -> None:
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None

    def _started(self) -> Zygote:
        if self._zygote is None or not self._zygote.alive:
            self.close()
            options = ":".join(f"{name}={value}" for name, value in _OPTIONS.items())
            self._zygote = Zygote(
                {
                    "LD_PRELOAD": ":".join(map(str, runtimes())),
                    "ASAN_OPTIONS": options,
                    "UBSAN_OPTIONS": "print_stacktrace=0",
                },
                probe_bytes=None,
            )
        return self._zygote

    def _watch(
        self, zygote: Zygote, context: ProblemContext, request: EvaluationRequest, seen: _Seen
    ) -> None:
        settings = request.settings

        def build(order: BuildRequest) -> BuildOutcome:
            seen.compiled.append(order)
            limit_s = min(settings.build_timeout_s, seen.left_s)
            return self._builder.build(order, limit_s, sanitize=True)

        # No limit on the address space: the sanitizers reserve terabytes of it.
        worker = zygote.fork(WorkerLimits(memory_bytes=None, cpu_seconds=_CPU_SECONDS))
        runner = ModuleRunner(worker, context.device, _SLOWER * settings.call_timeout_s)
        # What is a finding alone there must not end this run.
        runner.looks_at_results = not context.rules.rejects
        runner.rejects_late_work = context.rules.rejects
        runner.copies_inputs = True
        runner.growth_bytes = settings.memory_limit_bytes
        runner.said.allowance = Allowance(seen.left_s)
        done = threading.Event()
        watching = threading.Thread(target=self._end_early, args=(worker, done))
        watching.start()
        try:
            context.workers.load(
                runner, request.candidate.source, "ModelNew", triton=False, build=build
            )
            Construction(context.setup, context.reference.randomised(secrets.randbits(62))).on(
                runner
            )
            for _ in range(_CALLS):
                with runner.call(context.draws.next().order):
                    seen.calls += 1
        except Rejection as rejection:
            seen.note = f"it did not get through: {rejection.message}"
            if seen.left_s <= _LEAST_S:
                seen.note = "it was not done in the time that there is for it"
            elif rejection.status is Status.BUILD_ERROR:
                seen.note = "it does not build with the sanitizers"
        finally:
            done.set()
            watching.join()
            runner.close()
        seen.read(worker.end().log)

    def _end_early(self, worker: WorkerProcess, done: threading.Event) -> None:
        while not done.wait(_LOOK_S):
            if self._ended():
                worker.kill()
                return


@dataclass
class _Seen:
    memory: Finding | None = None
    undefined: tuple[Finding, ...] = ()
    calls: int = 0
    note: str = ""
    """Why a worker did not answer all calls."""
    deadline: float = math.inf
    """By the monotonic clock."""
    compiled: list[BuildRequest] = field(default_factory=list)

    @property
    def left_s(self) -> float:
        return max(_LEAST_S, self.deadline - time.monotonic())

    def read(self, text: str) -> None:
        texts = compiled_texts(self.compiled)
        memory = memory_finding(text)
        self.memory = memory and with_lines(memory, texts)
        known = {finding.place for finding in self.undefined}
        more = [
            with_lines(each, texts) for each in undefined_findings(text) if each.place not in known
        ]
        self.undefined += tuple(more)

    def records(self, seconds: float) -> list[SanitizerRun]:
        found = {
            Tool.ADDRESS: (self.memory,) if self.memory else (),
            Tool.UNDEFINED: self.undefined,
        }
        refused = any(finding.refuses for each in found.values() for finding in each)
        if refused and not self.calls:
            self.note = "the other tool ended it in the first call"
        note = "" if refused and self.calls else self.note
        return [
            SanitizerRun(
                tool=tool,
                outcome="findings" if findings else "inconclusive" if note else "clean",
                note="" if findings else note,
                findings=findings,
                calls=self.calls,
                seconds=seconds,
            )
            for tool, findings in found.items()
        ]


@cache
def runtimes() -> tuple[Path, ...]:
    """The libraries to preload; empty where there is no GCC that brings its sanitizers.

    The C++ library comes along because AddressSanitizer must find its `throw` when it starts, and
    Python is no C++ program.
    """
    compiler = cxx_compiler()
    # Clang's runtimes are others, and it may well point to GCC's.
    if compiler is None or "clang" in (printed_by(compiler, "--version") or ""):
        return ()
    # The libraries themselves name libubsan; it need not be there before them.
    names = ("libubsan.so", "libasan.so", "libstdc++.so.6")
    said = (printed_by(compiler, f"-print-file-name={name}") for name in names)
    found = [Path((path or "").strip()) for path in said]
    # A compiler that does not have it repeats the bare name.
    if not all(path.is_absolute() and path.exists() for path in found):
        return ()
    return tuple(path.resolve() for path in found[1:])


def _why_not(request: EvaluationRequest, *, compiles: bool) -> str:
    if request.settings.device != "cpu" or request.candidate.backend is not Backend.CPP:
        return "these sanitizers are for C++ on a CPU"
    if not compiles:
        return "the candidate compiles nothing"
    if not runtimes():
        return "there is no GCC that brings its sanitizers: install g++, libasan and libubsan"
    return ""
