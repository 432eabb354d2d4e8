"""The judge: owns the reference, the seeds, the inputs, the clock and the verdict.

It never runs candidate code. What comes out of a worker is bytes in a slot; everything else that a
worker says is a claim, used for words or bounded by what the judge sees itself.
"""

from __future__ import annotations

import platform
import secrets
import time
from dataclasses import dataclass, field
from typing import Literal

import torch

from evaluator.build.builder import Builder
from evaluator.build_request import BuildOutcome, BuildRequest
from evaluator.device_lock import device_lock
from evaluator.devices import conditions, describe
from evaluator.errors import DeviceError, IsolationError
from evaluator.evaluation import (
    Backend,
    BaselineName,
    BuildReport,
    Candidate,
    Correctness,
    Evaluation,
    EvaluationRequest,
    Seconds,
    Status,
    Timing,
)
from evaluator.judge.bench import Bench, Draw, bench_key, flatten_arguments
from evaluator.judge.conduct import works_early
from evaluator.judge.correctness import compare
from evaluator.judge.mismatch import add_race
from evaluator.judge.process import Zygote
from evaluator.judge.refusal import Refusal
from evaluator.judge.sampling import sample
from evaluator.judge.side import Build, Side
from evaluator.judge.tampering import wrote_to_inputs
from evaluator.judge.timing import timing_of
from evaluator.walls.demands import STRICT, STRICT_COMPILER, missing, refusal

_MOST_BENCHES = 4
"""Problems that stay set up, so that several can be refined in turn."""
_FIRST_CALLS = 3
"""Calls that are all verified before any time is spent on timing."""


@dataclass
class _Trial:
    """What is known of the candidate in hand so far."""

    judged: int = 0
    made: int = 0
    worst_ratio: float | None = None
    limit: float | None = None
    source: Literal["fp64", "fp64_sliced", "fp64_cpu", "task_precision"] = "fp64"
    seeds: list[int] = field(default_factory=list)
    build_seconds: float = 0.0
    device_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    timing: Timing | None = None
    seen: dict[str, float | int] = field(default_factory=dict)


class Judge:
    """Judges one candidate after the other on one device. Not safe for several threads."""

    def __init__(self, device: torch.device, builder: Builder) -> None:
        self.device = device
        self._builder = builder
        self._zygote: Zygote | None = None
        self._benches: dict[tuple[object, ...], Bench] = {}

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate. Raises `InfrastructureError` when our side breaks."""
        begin = time.monotonic()
        trial = _Trial()
        side: Side | None = None
        status, refusal = Status.CORRECT, None
        with device_lock(request.settings.device):
            bench = self.bench_for(request)
            try:
                side = bench.new_side()
                if request.settings.isolation == "strict":
                    self._insist(side)
                self._try(bench, side, request, trial)
            except Refusal as reason:
                status, refusal = reason.status, reason
            finally:
                if side is not None:
                    side.close()
        seconds = Seconds(
            build=trial.build_seconds,
            judge=time.monotonic() - begin - trial.build_seconds,
            device=trial.device_seconds,
        )
        correctness = Correctness(
            calls_judged=trial.judged,
            calls_made=trial.made,
            reference=trial.source,
            error_ratio=trial.worst_ratio,
            error_ratio_limit=trial.limit,
            mismatch=refusal.mismatch if refusal else None,
        )
        return Evaluation(
            status=status,
            reason=refusal.reason if refusal else "",
            message=refusal.message if refusal else _praise(trial.timing),
            detail=refusal.detail if refusal else "",
            weights=side.fit if side else "none",
            build=side.build if side else None,
            correctness=correctness if trial.made else None,
            timing=trial.timing if refusal is None else None,
            isolation=self._isolation(side) if side else (),
            device=describe(request.settings.device).name,
            conditions=conditions(request.settings.device)
            | trial.seen
            | {
                "threads": bench.threads,
                "persisting_l2_reset": bench.persisting_l2_reset,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
            seeds=tuple(trial.seeds),
            notes=tuple(trial.notes),
            seconds=seconds,
        )

    def _insist(self, side: Side) -> None:
        """Raise `IsolationError` unless every wall stands that strict isolation asks for."""
        lacking = missing(side.worker.isolation, STRICT)
        lacking += missing(self._builder.isolation, STRICT_COMPILER)
        if lacking:
            raise IsolationError(refusal(lacking))

    def _isolation(self, side: Side) -> tuple[str, ...]:
        compilers = self._builder.isolation if side.build is not None else ()
        return (*side.worker.isolation, *compilers)

    def bench_for(self, request: EvaluationRequest) -> Bench:
        """The problem of this request, set up; from earlier where it stays so."""
        if self._zygote is None or not self._zygote.alive:
            self._forget_benches(keep=0)
            self._zygote = Zygote()
        key = bench_key(request)
        bench = self._benches.pop(key, None)
        if bench is None:
            self._forget_benches(keep=_MOST_BENCHES - 1)
            try:
                bench = Bench(request, self.device, self._zygote)
            except DeviceError:
                if not self._benches:
                    raise
                # The others' inputs and workers may be what leaves no room.
                self._forget_benches(keep=0)
                bench = Bench(request, self.device, self._zygote)
        self._benches[key] = bench
        bench.settings = request.settings
        return bench

    def _forget_benches(self, *, keep: int) -> None:
        """Close the benches that were used longest ago."""
        while len(self._benches) > keep:
            self._benches.pop(next(iter(self._benches))).close()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _try(self, bench: Bench, side: Side, request: EvaluationRequest, trial: _Trial) -> None:
        def build(order: BuildRequest) -> BuildOutcome:
            outcome = self._builder.build(order, request.settings.build_timeout_s)
            trial.build_seconds += outcome.seconds
            return outcome

        self._first_calls(bench, side, request.candidate, build, trial)
        if side.build is not None and not side.build.ok:
            trial.notes.append("a build failed and the candidate went on without it")
        for other in bench.hidden(request.hidden_references):
            self._at_hidden_sizes(other, request.candidate, build, trial)
        self._time(bench, side, trial)

    def _first_calls(
        self, bench: Bench, side: Side, candidate: Candidate, build: Build, trial: _Trial
    ) -> None:
        """Import, construct and call the candidate, all calls verified; raises `Refusal`."""
        try:
            bench.load(
                side,
                candidate.source,
                "ModelNew",
                triton=candidate.backend is Backend.TRITON,
                build=build,
            )
        except Refusal as refusal:
            raise _with_build(refusal, side.build) from None
        state = bench.reference.randomised(secrets.randbits(62))
        fit = bench.construct(side, state)
        if fit == "seeded":
            # Neither names nor shapes agree: only the public seed can have given equal weights.
            state = bench.reference.seeded
        bench.reference.set_state(state)
        # The worker has a module now; what it computes from here on is what counts.
        for index in range(_FIRST_CALLS):
            draw = bench.draw(near=index == 1)
            trial.made += 1
            try:
                with side.call(draw.order) as call:
                    sealed = side.outputs(call.reply, bench.outputs)
                    borrowed = side.borrowed(call.reply)
            except Refusal as refusal:
                side.close()
                if (
                    _is_fault(refusal)
                    and not bench.reference.changes_inputs
                    and (wrote_to_inputs(bench, candidate, state, draw, build))
                ):
                    raise Refusal(
                        Status.INTEGRITY,
                        "input_modified",
                        "forward writes into its inputs, which are not its own",
                        detail=refusal.message,
                    ) from None
                raise
            trial.device_seconds += call.wall_us / 1e6
            self._verify(bench, side, sealed, draw, trial)
            _refuse_borrowed(bench, *borrowed)

    def _at_hidden_sizes(
        self, bench: Bench, candidate: Candidate, build: Build, trial: _Trial
    ) -> None:
        """The same in a worker of its own, at sizes that the candidate's author was not shown."""
        side = bench.new_side()
        try:
            self._first_calls(bench, side, candidate, build, trial)
        except Refusal as refusal:
            shapes = " and ".join(
                str(tuple(t.shape)) for t in flatten_arguments(bench.draw().values)
            )
            refusal.message = f"with other sizes, inputs of shape {shapes}: {refusal.message}"
            raise
        finally:
            side.close()

    def _verify(
        self, bench: Bench, side: Side, actual: list[torch.Tensor], draw: Draw, trial: _Trial
    ) -> None:
        """Compare the sealed outputs of one call with the reference's; raises `Refusal`."""
        trial.judged += 1
        trial.seeds.append(draw.seed)
        values = draw.values
        exact, trial.source = bench.reference.exact(values)
        expected = bench.reference.expected(values)
        verdict = compare(
            actual,
            [tensor.to(self.device) for tensor in expected],
            exact,
            inputs=flatten_arguments(values),
            precision=bench.settings.precision,
            protocol=bench.settings.protocol,
            accumulation=bench.work.accumulation,
            poison=side.poison,
        )
        if verdict.error_ratio is not None:
            trial.worst_ratio = max(verdict.error_ratio, trial.worst_ratio or 0.0)
        trial.limit = verdict.error_ratio_limit
        if verdict.ok:
            return
        mismatch = verdict.mismatch
        assert mismatch is not None
        if mismatch.kind == "values" and not bench.reference.changes_inputs:
            with side.call(draw.order) as repeated:
                again = side.outputs(repeated.reply, bench.outputs)
            if any(
                not torch.equal(a.nan_to_num(), b.nan_to_num())
                for a, b in zip(actual, again, strict=False)
            ):
                mismatch = add_race(mismatch)
        raise Refusal(
            Status.INCORRECT,
            f"wrong_{mismatch.kind}",
            f"output {mismatch.output} is not what it should be",
            mismatch=mismatch,
        )

    def _time(self, bench: Bench, side: Side, trial: _Trial) -> None:
        def verify(sealed: list[torch.Tensor], draw: Draw) -> None:
            self._verify(bench, side, sealed, draw, trial)

        eager = bench.baseline(BaselineName.EAGER)
        assert eager is not None
        for each in (side, eager):
            each.prepare_us.clear()
        sampling = sample(
            bench,
            side,
            verify,
            seconds=bench.settings.timing_seconds,
            relative_width=bench.settings.relative_width,
        )
        if works_early(side.prepare_us, eager.prepare_us):
            raise Refusal(
                Status.INTEGRITY,
                "work_before_start",
                "the candidate works between the laying of its inputs and the start of the call",
            )
        trial.made += sampling.blocks
        trial.seen = sampling.seen
        trial.device_seconds += sampling.device_seconds
        timing, notes = timing_of(sampling, bench.bounds, self.device)
        trial.notes += notes
        trial.notes += [bench.baseline_notes[n] for n in bench.baseline_notes]
        if timing.floor_us is not None and timing.latency_us < timing.floor_us:
            raise Refusal(
                Status.INTEGRITY,
                "below_floor",
                f"{timing.latency_us:.2f} us is less than the {timing.floor_us:.2f} us that moving "
                "the bytes takes at this device's published peak: the work was not done",
            )
        trial.timing = timing

    def close(self) -> None:
        """End all processes."""
        self._forget_benches(keep=0)
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None


def _refuse_borrowed(bench: Bench, inputs: bool, each_other: bool) -> None:
    """Outputs that are views of the inputs or of each other where the reference's are not."""
    if inputs and not bench.returns_inputs:
        what = "an output is a view of an input"
    elif each_other and not bench.returns_overlaps:
        what = "two outputs share memory"
    else:
        return
    raise Refusal(
        Status.INTEGRITY, "borrowed_output", f"{what}, which the reference's is not; return a copy"
    )


def _is_fault(refusal: Refusal) -> bool:
    """Whether it may have been a write to memory that is mapped read-only."""
    told = refusal.message + refusal.detail
    return refusal.reason in ("segfault", "sigbus") or "illegal memory access" in told


def _with_build(refusal: Refusal, build: BuildReport | None) -> Refusal:
    if refusal.status is Status.BUILD_ERROR and build is not None:
        refusal.detail = refusal.detail or build.log[-2000:]
    return refusal


def _praise(timing: Timing | None) -> str:
    if timing is None:
        return "correct"
    return (
        f"correct; {timing.speedup:.3g}x [{timing.speedup_low:.3g}, {timing.speedup_high:.3g}] "
        f"over {BaselineName.EAGER}: {timing.verdict}"
    )
