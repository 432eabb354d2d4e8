"""The candidate once more, built with AddressSanitizer and UndefinedBehaviorSanitizer.

The runtimes have to be in a process before anything else, and PyTorch is not built with them. So
they are preloaded into a zygote of its own, and the candidate's library alone is instrumented. Its
inputs are copied into heap blocks, which have guarded bounds; parameters lie in such blocks anyway.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from pathlib import Path

from evaluator.build.builder import Builder
from evaluator.build_request import BuildOutcome, BuildRequest
from evaluator.deep_audit.address_report import memory_finding, undefined_findings
from evaluator.deep_audit.own_code import OwnCode
from evaluator.deep_audit.record import Finding, SanitizerRun, Tool
from evaluator.errors import InfrastructureError
from evaluator.evaluation import Backend, Candidate, Settings, Status
from evaluator.judge.bench import Bench
from evaluator.judge.process import Zygote
from evaluator.judge.refusal import Refusal
from evaluator.judge.side import Side

_CALLS = 3
_SLOWER = 10.0
"""How much longer than otherwise a call may take: instrumented code is that slow."""
_CPU_SECONDS = 1800
_OPTIONS = {
    # PyTorch and Python are not instrumented: what they leave behind is none of our business.
    "detect_leaks": 0,
    "detect_odr_violation": 0,
    "detect_container_overflow": 0,
    "alloc_dealloc_mismatch": 0,
    "new_delete_type_mismatch": 0,
    "allocator_may_return_null": 1,
    # Ours, not the worker's own handler, which would tell less.
    "handle_segv": 2,
    "handle_sigbus": 2,
    "handle_abort": 0,
    "malloc_context_size": 8,
    "print_legend": 0,
    "stack_trace_format": '"    #%n %f %S"',
}


class AddressSanitizer:
    """Runs candidates under both sanitizers, in workers forked from a zygote that holds them."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._zygote: Zygote | None = None

    def run(
        self, bench: Bench, candidate: Candidate, settings: Settings, code: OwnCode
    ) -> list[SanitizerRun]:
        """One record for each of the two tools. Nothing is raised: what can't be run is told."""
        begin = time.monotonic()
        reason = _why_not(candidate, settings, code)
        if not reason:
            try:
                zygote = self._started()
            except InfrastructureError as error:
                reason = f"the sanitizers' process did not start: {error}"
        if reason:
            return [_record(tool, "not_run", note=reason) for tool in _TOOLS]
        try:
            text, calls, note = self._watched(zygote, bench, candidate, settings)
        except InfrastructureError as error:
            return [_record(tool, "not_run", note=str(error)) for tool in _TOOLS]
        memory = memory_finding(text)
        undefined = undefined_findings(text)
        seconds = time.monotonic() - begin
        if memory or any(finding.refuses for finding in undefined):
            note = "" if calls else "one of the two ended it in the first call"
        found = {Tool.ADDRESS: (memory,) if memory else (), Tool.UNDEFINED: undefined}
        return [_told(tool, found[tool], calls, note, seconds) for tool in _TOOLS]

    def close(self) -> None:
        """End the zygote and its workers."""
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
                }
            )
        return self._zygote

    def _watched(
        self, zygote: Zygote, bench: Bench, candidate: Candidate, settings: Settings
    ) -> tuple[str, int, str]:
        """What the worker printed, how many calls it answered, and why it told nothing, if so."""

        def build(order: BuildRequest) -> BuildOutcome:
            return self._builder.build(order, settings.build_timeout_s, sanitize=True)

        # No limit on the address space: the sanitizers reserve terabytes of it.
        worker = zygote.fork(memory_bytes=None, cpu_seconds=_CPU_SECONDS)
        side = Side(worker, bench.device, _SLOWER * settings.call_timeout_s)
        side.copies_inputs = True
        side.growth_bytes = settings.memory_limit_bytes
        calls = 0
        try:
            bench.load(
                side,
                candidate.source,
                "ModelNew",
                triton=False,
                build=build,
            )
            bench.construct(side, bench.reference.randomised(secrets.randbits(62)))
            while calls < _CALLS:
                with side.call(bench.draw().order):
                    calls += 1
            note = ""
        except Refusal as refusal:
            note = f"it did not get through: {refusal.message}"
            if refusal.status is Status.BUILD_ERROR:
                note = "it does not build with the sanitizers"
        finally:
            side.close()
        return worker.end().log, calls, note


_TOOLS = (Tool.ADDRESS, Tool.UNDEFINED)


def runtimes() -> tuple[Path, ...]:
    """The libraries to preload; empty where the compiler brings no sanitizers.

    The C++ library comes along because AddressSanitizer must find its `throw` when it starts, and
    Python is no C++ program.
    """
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        return ()
    found = []
    for name in ("libubsan.so", "libasan.so", "libstdc++.so.6"):
        try:
            done = subprocess.run(
                [compiler, f"-print-file-name={name}"],
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ()
        path = Path(done.stdout.strip())
        # A compiler that does not have it repeats the bare name.
        if not path.is_absolute() or not path.exists():
            return ()
        found.append(path.resolve())
    # The libraries themselves name libubsan; it need not be there before them.
    return tuple(found[1:])


def _why_not(candidate: Candidate, settings: Settings, code: OwnCode) -> str:
    if settings.device != "cpu" or candidate.backend is not Backend.CPP:
        return "these sanitizers are for C++ on a CPU"
    if not code.libraries:
        return "the candidate compiles nothing"
    return "" if runtimes() else "the compiler brings no sanitizers: install libasan and libubsan"


def _told(
    tool: Tool, findings: tuple[Finding, ...], calls: int, note: str, seconds: float
) -> SanitizerRun:
    if findings:
        return _record(tool, "findings", findings=findings, calls=calls, seconds=seconds)
    outcome = "inconclusive" if note else "clean"
    return _record(tool, outcome, calls=calls, note=note, seconds=seconds)


def _record(tool: Tool, outcome: str, **facts: object) -> SanitizerRun:
    return SanitizerRun.model_validate({"tool": tool, "outcome": outcome, **facts})
