"""The deep audit of a correct candidate: sanitizers, provenance, module life.

It comes after the verdict on correctness and time is sealed. An error of memory that a sanitizer
found turns the verdict, because such a kernel is right by luck; so does a label other than `custom`
where custom kernels or kept results are required. All else is reported beside the verdict.
"""

from __future__ import annotations

import math
import time
from contextlib import closing
from dataclasses import dataclass, field

from evaluator.audit_record import (
    DeepAudit,
    Finding,
    Life,
    LifeTrial,
    Provenance,
    SanitizerRun,
    Tool,
)
from evaluator.builder.builder import Builder
from evaluator.collect.target.broker import Ended, never
from evaluator.deep_audit.address_sanitizer import AddressSanitizer
from evaluator.deep_audit.compute_sanitizer import (
    SANITIZERS_S,
    at_moderate_sizes,
    run_compute_sanitizer,
)
from evaluator.deep_audit.crash_look import with_crash_look
from evaluator.deep_audit.module_life import module_life, not_tried
from evaluator.deep_audit.occasion import crashed, occasion_for
from evaluator.deep_audit.own_code import built_code
from evaluator.deep_audit.provenance import Origin, origin_of
from evaluator.errors import AuditEndedError, InfrastructureError
from evaluator.evaluation import Evaluation, EvaluationRequest, Status
from evaluator.judge.judge import Judge
from evaluator.reason import Reason

_AT_HIDDEN_SIZES = "at its smallest hidden sizes"


@dataclass
class _Begun:
    """What an audit has found, from which it goes on where it was ended."""

    runs: list[SanitizerRun] = field(default_factory=list)
    origin: Origin | None = None
    life: list[LifeTrial] = field(default_factory=list)


class DeepAuditor:
    def __init__(self, judge: Judge, builder: Builder, ended: Ended = never) -> None:
        """`ended`: whether the audit in hand is to be ended, for a turn that waits."""
        self._judge = judge
        self._builder = builder
        self._ended = ended
        self._address = AddressSanitizer(builder, ended)
        self._begun: dict[str, _Begun] = {}
        """By request."""
        self._fastest_us: dict[str, float] = {}
        """By reference: the shortest time of a kernel that an audit found nothing against."""

    def audited(
        self, request: EvaluationRequest, evaluation: Evaluation, *earlier: DeepAudit
    ) -> Evaluation:
        """The evaluation, with an audit or a look at a crash where there is occasion for one.

        After `earlier` audits, of the kernel at other cases, sanitizers have what these left them,
        and all else is done once more only where it may refuse the kernel.

        Raises `AuditEndedError` alone: where the judge fails, the verdict is kept and a note says
        so.
        """
        # On the set-up that the verdict has left.
        settings = request.settings.model_copy(update={"fresh_workers": False})
        request = request.model_copy(update={"settings": settings})
        if crashed(evaluation, request.settings):
            return with_crash_look(self._judge, self._builder, self._address, request, evaluation)
        occasion = occasion_for(evaluation, request.settings)
        timing = evaluation.timing
        if occasion is None or timing is None:
            return evaluation
        note, fastest_us = "", self._fastest_us.get(request.reference, math.inf)
        if occasion in ("speedup", "under_bound") and timing.latency_us >= fastest_us:
            note = "not audited: a faster kernel for this problem was, and nothing was found"
        before = [run for audit in earlier for run in audit.sanitizers]
        # On a CPU the two run at once.
        left_s = SANITIZERS_S - sum(run.seconds for run in before if run.tool is not Tool.UNDEFINED)
        whole = not earlier or request.settings.require != "any"
        if not whole and left_s < min((r.seconds for r in before if r.calls), default=0.0):
            note = f"no sanitizers: the {SANITIZERS_S:.3g} s for all cases are used up"
        if note:
            return evaluation.model_copy(update={"notes": (*evaluation.notes, note)})
        begin, key = time.monotonic(), request.model_dump_json()
        begun = self._begun.setdefault(key, _Begun())
        if begun.origin is None:
            failed = evaluation.build is not None and not evaluation.build.ok
            limit_s = max(0.0, left_s) if occasion != "required" else None
            begun.origin = self._looked(request, begun.runs, limit_s, failed=failed, traces=whole)
        if whole and (occasion == "asked" or request.settings.require == "kept_results"):
            self._live(request, begun.life, as_constructed=evaluation.weights == "seeded")
        runs, origin = begun.runs, begun.origin
        del self._begun[key]
        audit = DeepAudit(
            occasion=occasion,
            sanitizers=tuple(runs),
            life=tuple(begun.life),
            shares=origin.shares,
            seconds=time.monotonic() - begin,
        )
        judged = with_audit(evaluation, audit, origin, require=request.settings.require)
        if judged.status is Status.CORRECT and runs and not any(run.findings for run in runs):
            self._fastest_us[request.reference] = timing.latency_us
        return judged

    def _looked(
        self,
        request: EvaluationRequest,
        runs: list[SanitizerRun],
        limit_s: float | None,
        *,
        failed: bool,
        traces: bool,
    ) -> Origin:
        """Adds the runs that are missing, if sanitizers have time at all. `failed`: a build did."""
        on_cpu = request.settings.device == "cpu"
        try:
            with self._judge.holding(request.settings.device):
                context = self._judge.context_for(request)
                code = built_code(context, self._builder, request)
                watched = request if on_cpu else at_moderate_sizes(request, context)
                if limit_s is not None and on_cpu and not runs:
                    compiles = bool(code.libraries)
                    runs += self._address.run(context, request, compiles=compiles, limit_s=limit_s)
            # These start processes of their own, which take the device when they need it.
            if limit_s is not None and not on_cpu:
                run_compute_sanitizer(watched, code, limit_s=limit_s, ended=self._ended, runs=runs)
                sizes = "" if watched.reference == request.reference else _AT_HIDDEN_SIZES
                runs[:] = [run.model_copy(update={"note": run.note or sizes}) for run in runs]
            if not traces:
                return Origin(None)
            origin = origin_of(request, code, build_failed=failed, ended=self._ended)
            if origin.label is None and self._ended():
                raise AuditEndedError("a turn came")
            return origin
        except AuditEndedError:
            raise
        except InfrastructureError as error:
            return Origin(None, note=f"the audit was not finished: {error}")

    def _live(
        self, request: EvaluationRequest, tried: list[LifeTrial], *, as_constructed: bool
    ) -> None:
        """Tries what is missing; an infrastructure error is reported and has no other effect."""
        try:
            with self._judge.holding(request.settings.device):
                context = self._judge.context_for(request)
                trials = module_life(
                    context, self._builder, request, tuple(tried), as_constructed=as_constructed
                )
                with closing(trials):
                    for trial in trials:
                        tried.append(trial)
                        if self._ended():
                            raise AuditEndedError("a turn came")
        except AuditEndedError:
            raise
        except (InfrastructureError, RuntimeError) as error:
            tried[:] = not_tried(str(error))

    def close(self) -> None:
        self._address.close()


def with_audit(
    evaluation: Evaluation, audit: DeepAudit, origin: Origin, *, require: str = "any"
) -> Evaluation:
    broken = {trial.life for trial in audit.life if trial.outcome == "broken"}
    update: dict[str, object] = {
        "audit": audit,
        "provenance": origin.label,
        "notes": (*evaluation.notes, *([origin.note] if origin.note else [])),
        "seconds": evaluation.seconds.model_copy(update={"audit": audit.seconds}),
    }
    status, reason, message = Status.INTEGRITY, None, ""
    if audit.refusing:
        tool, finding = audit.refusing[0]
        status = Status.RUNTIME_ERROR
        reason = Reason.RACE if tool is Tool.RACECHECK else Reason.MEMORY_ERROR
        message = f"right by luck: {_NAMES.get(tool, tool)} found {finding}"
        update["detail"] = _detail([each for _, each in audit.refusing])
    elif require == "custom" and origin.label is not Provenance.CUSTOM:
        reason = Reason.NOT_CUSTOM if origin.label else Reason.PROVENANCE_UNKNOWN
        message = _required(origin)
    elif require == "kept_results" and Life.RESULT_KEPT in broken:
        reason = Reason.RESULT_OVERWRITTEN
        message = "kept results are required, and the next call overwrites its result"
    if reason is not None:
        update |= {"status": status, "reason": reason, "message": message, "timing": None}
    # Not model_copy, which would not check that the payload fits the status.
    return Evaluation.model_validate(dict(evaluation) | update)


def _required(origin: Origin) -> str:
    if origin.label is None:
        return f"custom kernels are required, and {origin.note}"
    share = f", {100 * origin.shares.own:.0f} % of the time is its own" if origin.shares else ""
    return f"custom kernels are required, and this is {origin.label}{share}"


def _detail(findings: list[Finding]) -> str:
    lines = []
    for finding in findings:
        lines += [str(finding), *(f"    {frame}" for frame in finding.frames)]
    return "\n".join(lines)[:16384]


_NAMES = {Tool.ADDRESS: "AddressSanitizer", Tool.UNDEFINED: "UndefinedBehaviorSanitizer"}
