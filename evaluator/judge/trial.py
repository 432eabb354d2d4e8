"""One candidate on trial: its calls, what they showed, and how long they took."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from evaluator.errors import DeviceError
from evaluator.evaluation import (
    Backend,
    BaselineName,
    Candidate,
    Correctness,
    Mismatch,
    Status,
    Timing,
)
from evaluator.judge.bench import Bench
from evaluator.judge.build_allowance import BuildAllowance
from evaluator.judge.conditioning import MULTIPLE, nudged_outputs
from evaluator.judge.conduct import works_early
from evaluator.judge.correctness import TOLERANCES, OutputVerdict, compare
from evaluator.judge.draws import Draw
from evaluator.judge.exact_reference import Source
from evaluator.judge.explanation import Explanation
from evaluator.judge.reference import flatten_arguments
from evaluator.judge.refusal import Refusal
from evaluator.judge.sampling import Sampling, sample
from evaluator.judge.sealing import refused_as_borrowed, sealed_outputs
from evaluator.judge.side import Call, Side
from evaluator.judge.tampering import wrote_to_inputs
from evaluator.judge.timing import timing_of
from evaluator.judge.variation import kind_of
from evaluator.worker.steps import Step

_FIRST_CALLS = 3
"""Calls that are all verified before any time is spent on timing."""
_JUDGED_TWICE = (
    " (judged twice: with the reference's weights copied into it, and as constructed from a seed)"
)
_KEPT_DRAWS = 2
_EXACT_SECONDS = 0.02
"""An fp64 reference that takes no longer verifies each call; of one that takes longer, so much is
spent on a call on average."""


@dataclass
class Trial:
    """What is known of the candidate in hand so far, and the steps that find out more."""

    candidate: Candidate
    builds: BuildAllowance
    side: Side | None = None
    """The worker that it runs in."""
    judged: int = 0
    made: int = 0
    worst_ratio: float | None = None
    limit: float | None = None
    source: Source = "fp64"
    seed: int | None = None
    """That both sides were constructed from, where it is judged as constructed, and not the public
    one."""
    judged_in_fp64: int = 0
    reference_errors: tuple[float, ...] | None = None
    """L's own relative error by output, the smallest of all calls that were verified in fp64."""
    earlier: tuple[Draw, ...] = ()
    """Of the last calls that were verified and right."""
    seeds: list[int] = field(default_factory=list)
    device_seconds: float = 0.0
    timing_seconds: float = 0.0
    narrowing_seconds: float = 0.0
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    timing: Timing | None = None
    seen: dict[str, float | int] = field(default_factory=dict)

    def correctness(self, mismatch: Mismatch | None) -> Correctness | None:
        """What the calls so far say; None before the first."""
        if not self.made:
            return None
        return Correctness(
            calls_judged=self.judged,
            calls_judged_in_fp64=self.judged_in_fp64,
            calls_made=self.made,
            reference=self.source,
            input_kinds=tuple(sorted({kind_of(seed) for seed in self.seeds})),
            error_ratio=self.worst_ratio,
            error_ratio_limit=self.limit,
            mismatch=mismatch,
        )

    def first_calls(self, bench: Bench, side: Side) -> None:
        """Import, construct and call the candidate, all calls verified; raises `Refusal`.

        First with the reference's weights. Where that leads to wrong values, and copying may have
        undone what the constructor prepared, once more in another worker, as constructed.
        """
        self.side = side
        before = self._counts
        try:
            self._first_calls(bench, side)
        except Refusal as refusal:
            if not _copying_may_be_wrong(refusal, side):
                raise
            first = self._counts
            # What copied weights led to says nothing of the second judgement.
            self._counts = before
            side.close()
            if (second := self._as_constructed(bench)) is None:
                return
            told = second.reason == "wrong_values"
            if told and (_is_explained(second) or not _is_explained(refusal)):
                second.message += _JUDGED_TWICE
                raise second from None
            assert self.side is not None
            self.side.close()
            self.side, self._counts = side, first
            if told:
                refusal.message += _JUDGED_TWICE
            else:
                refusal.message += f" (judged again as constructed from a seed: {second.message})"
            raise

    def _as_constructed(self, bench: Bench) -> Refusal | None:
        """Judge it with what its constructor made of a secret seed. Returns why it is refused."""
        self.side = bench.new_side()
        try:
            self._first_calls(bench, self.side, as_constructed=True)
        except Refusal as refusal:
            return refusal
        return None

    @property
    def _counts(self) -> tuple[int, int, int, float | None, list[int]]:
        """What a record says of the calls so far."""
        return self.judged, self.judged_in_fp64, self.made, self.worst_ratio, list(self.seeds)

    @_counts.setter
    def _counts(self, counts: tuple[int, int, int, float | None, list[int]]) -> None:
        self.judged, self.judged_in_fp64, self.made, self.worst_ratio, self.seeds = counts

    def _first_calls(self, bench: Bench, side: Side, *, as_constructed: bool = False) -> None:
        bench.load(
            side,
            self.candidate.source,
            "ModelNew",
            triton=self.candidate.backend is Backend.TRITON,
            build=self.builds.build,
        )
        self._construct(bench, side, as_constructed=as_constructed)
        if bench.sequence is not None:
            bench.sequence.begin(side)
        self.reference_errors = None
        self.earlier = ()
        _make_room(bench)
        # The worker has a module now; what it computes from here on is what counts.
        bench.draws.begin()
        # KernelBench's reference, in the same process, takes the memory that moving a module frees.
        steps: tuple[Step, ...] = ("soil",) if bench.settings.protocol == "kernelbench" else ()
        for index in range(_FIRST_CALLS):
            draw = bench.draws.next(near=index == 1)
            self.made += 1
            try:
                draw, call, sealed, borrowed = self._call(bench, side, draw, steps)
            except Refusal as refusal:
                side.close()
                if (
                    _is_fault(refusal)
                    and not bench.reference.changes_inputs
                    and (wrote_to_inputs(bench, self.candidate, draw, self.builds.build))
                ):
                    raise Refusal(
                        Status.INTEGRITY,
                        "input_modified",
                        "forward writes into its inputs, which are not its own",
                        detail=refusal.message,
                    ) from None
                raise
            self.device_seconds += call.wall_us / 1e6
            side.note_memory()
            self._verify(bench, side, sealed, draw)
            if borrowed is not None:
                raise borrowed
            lent = bench.draws.writable and not bench.reference.changes_inputs
            if lent and not bench.draws.holds(draw):
                self._hold_against(
                    bench,
                    "input_modified",
                    "forward writes into its inputs, which are not its own",
                )
        if bench.settings.protocol == "kernelbench" and bench.sequence is None:
            self._note_kept_address(bench, side)

    def _note_kept_address(self, bench: Bench, side: Side) -> None:
        """Where its inputs always lie in one place, as KernelBench's do, nothing tells of it."""
        draw, _, sealed, _ = self._call(bench, side, bench.draws.elsewhere())
        if not self.is_right(bench, side, sealed, draw):
            self._hold_against(
                bench,
                "kept_address",
                "results are wrong where the inputs lie at another address than in the first calls",
            )

    def _call(
        self, bench: Bench, side: Side, draw: Draw, steps: Sequence[Step] = ()
    ) -> tuple[Draw, Call, list[torch.Tensor], Refusal | None]:
        """A call with what it was made of, its sealed outputs, and whether they are borrowed.

        Raises `Refusal`.
        """
        try:
            with bench.calling(side, draw, steps=steps) as call:
                sealed = sealed_outputs(bench, side, call.reply, draw)
                return draw, call, sealed, refused_as_borrowed(bench, side, call.reply)
        except Refusal as refusal:
            if refusal.reason != "tensor_subclass" or side.looks_at_results:
                raise
            self._hold_against(bench, refusal.reason, refusal.message)
        side.looks_at_results = True
        if bench.draws.writable:
            draw = replace(draw, order=bench.draws.lay_again(draw))
        return self._call(bench, side, draw, steps)

    def _construct(self, bench: Bench, side: Side, *, as_constructed: bool) -> None:
        """Give both sides equal weights; raises `Refusal`."""
        reference = bench.reference
        if bench.settings.protocol == "kernelbench":
            # As there: both sides as the public seed constructs them, moved to the device and the
            # task's dtype before each call, under the flags that the candidate leaves behind.
            reference.construct_publicly()
            reference.set_state(reference.seeded)
            bench.construct(side, {})
            side.fit, side.steps, side.refuses_late_work = "seeded", ("cast",), False
            reference.flags = side.flags
            return
        if not as_constructed:
            reference.construct_publicly()
            reference.randomise(secrets.randbits(62))
            if bench.construct(side, reference.state()) != "unmatched":
                return
        self.seed = seed = secrets.randbits(62)
        reference.construct(seed)
        if fixed := reference.fixed_parameters():
            raise Refusal(
                Status.INTEGRITY,
                "weights_unmatched",
                "its parameters are the reference's neither by name nor by order and shape, and "
                f"`{fixed[0]}` follows from no seed: register the reference's parameters",
            )
        bench.construct(side, {}, seed=seed)
        side.fit = "seeded"

    def at_hidden_sizes(self, bench: Bench, *, another: bool = False) -> None:
        """The same in a worker of its own, at sizes that the candidate's author was not shown.

        `another`: they are not the last ones.
        """
        visible = self.side
        try:
            self.first_calls(bench, bench.new_side(another=another))
            if self.side is not None:
                self._note_late_work(bench, self.side)
        except Refusal as refusal:
            shapes = " and ".join(
                str(tuple(t.shape))
                for t in flatten_arguments(bench.draws.values_of(bench.draws.plain()))
            )
            refusal.message = f"with other sizes, inputs of shape {shapes}: {refusal.message}"
            raise
        finally:
            if self.side is not None:
                self.side.close()
            self.side = visible

    def _verify(self, bench: Bench, side: Side, actual: list[torch.Tensor], draw: Draw) -> None:
        """Compare the sealed outputs of one call with the reference's; raises `Refusal`."""
        self.judged += 1
        self.seeds.append(draw.seed)
        expected = bench.expected(draw)
        # What passes without fp64 would pass with it; what does not is compared in fp64 after all.
        if (
            not self._wants_fp64(bench)
            and self._compared(bench, side, actual, expected, None, draw, screening=True).ok
        ):
            self.earlier = (*self.earlier, draw)[-_KEPT_DRAWS:]
            return
        verdict = self._compared_in_fp64(bench, side, actual, expected, draw)
        if verdict.error_ratio is not None:
            self.worst_ratio = max(verdict.error_ratio, self.worst_ratio or 0.0)
        self.limit = verdict.error_ratio_limit
        if verdict.ok:
            self.earlier = (*self.earlier, draw)[-_KEPT_DRAWS:]
            return
        mismatch = verdict.mismatch
        assert mismatch is not None
        if mismatch.kind == "values" and not bench.reference.changes_inputs:
            mismatch = Explanation(bench, side, draw, actual, self.earlier).of(mismatch)
        raise Refusal(
            Status.INCORRECT,
            f"wrong_{mismatch.kind}",
            f"{_what_is_wrong(bench, mismatch.output)} is not what it should be",
            mismatch=mismatch,
        )

    def is_right(
        self,
        bench: Bench,
        side: Side,
        actual: list[torch.Tensor],
        draw: Draw,
        *,
        in_fp64: bool = True,
    ) -> bool:
        """Whether the outputs of a call pass the rule; nothing is counted or explained."""
        expected = bench.expected(draw)
        if not in_fp64:
            return self._compared(bench, side, actual, expected, None, draw).ok
        passed = self._compared(bench, side, actual, expected, None, draw, screening=True).ok
        return passed or self._compared_in_fp64(bench, side, actual, expected, draw).ok

    def _wants_fp64(self, bench: Bench) -> bool:
        """Whether the call in hand is verified in fp64, drawn once its outputs are sealed."""
        if self.reference_errors is None:
            return True
        share = _EXACT_SECONDS / max(bench.exact_seconds, _EXACT_SECONDS)
        return secrets.randbelow(2**32) < share * 2**32 and bench.memory.can_take(
            bench.verifying_bytes
        )

    def _compared_in_fp64(
        self,
        bench: Bench,
        side: Side,
        actual: list[torch.Tensor],
        expected: list[torch.Tensor],
        draw: Draw,
    ) -> OutputVerdict:
        """The verdict by the rule; what is wrong is described."""
        exact = None
        if bench.settings.protocol not in TOLERANCES:
            with bench.measured_verification():
                found = bench.exact(draw)
            exact, self.source = found.outputs, found.source
        else:
            self.source = "task_precision"

        def beside(reference: list[torch.Tensor], multiple: float | None = None) -> OutputVerdict:
            return self._compared(bench, side, actual, reference, exact, draw, multiple=multiple)

        verdict = beside(expected)
        if exact is not None:
            self.judged_in_fp64 += 1
            before = self.reference_errors or verdict.reference_errors
            self.reference_errors = tuple(map(min, before, verdict.reference_errors))
        if verdict.excusable and exact is not None:
            precision = bench.settings.precision
            values = bench.draws.values_of(draw)
            others = nudged_outputs(bench.reference, values, exact, precision, draw.seed)
            verdicts = (beside(other, MULTIPLE[precision]) for other in others)
            verdict = next((v for v in verdicts if v.ok), verdict)
        if verdict.ok:
            return verdict
        return self._compared(bench, side, actual, expected, exact, draw, describing=True)

    def _compared(
        self,
        bench: Bench,
        side: Side,
        actual: list[torch.Tensor],
        expected: list[torch.Tensor],
        exact: Sequence[torch.Tensor] | None,
        draw: Draw,
        *,
        multiple: float | None = None,
        screening: bool = False,
        describing: bool = False,
    ) -> OutputVerdict:
        # Ties are looked for in the inputs, and what is wrong is described with them.
        wanted = describing or any(not t.dtype.is_floating_point for t in expected)
        return compare(
            actual,
            [tensor.to(bench.device) for tensor in expected],
            exact,
            inputs=flatten_arguments(bench.draws.values_of(draw)) if wanted else (),
            precision=bench.settings.precision,
            protocol=bench.settings.protocol,
            accumulation=bench.work.accumulation,
            poison=side.poison,
            multiple=multiple,
            assumed_errors=self.reference_errors if screening else None,
            describing=describing,
        )

    def time(self, bench: Bench, side: Side) -> None:
        """Time the candidate beside its baselines, some calls verified; raises `Refusal`."""
        begin = time.monotonic()
        try:
            self._time(bench, side)
        finally:
            self.timing_seconds = time.monotonic() - begin

    def _time(self, bench: Bench, side: Side) -> None:
        # On a busy machine one of two workers may get its processor late for a whole short sample,
        # hardly twice. Of the first nothing counts, so nobody gains by being early in it alone.
        sampling = self._sampled(bench, side)
        if _is_early(sampling):
            sampling = self._sampled(bench, side)
        if _is_early(sampling):
            self._hold_against(
                bench, "work_before_start", "the candidate works before the start of its calls"
            )
        self.seen = sampling.seen
        self.narrowing_seconds = sampling.narrowing_seconds
        timing, notes = timing_of(sampling, bench.bounds, bench.settings, bench.work.operators)
        self.notes += notes
        self.notes += bench.baselines.notes.values()
        if timing.floor_us is not None and timing.latency_us < timing.floor_us:
            self._hold_against(
                bench,
                "below_floor",
                f"{timing.latency_us:.2f} us is less than the {timing.floor_us:.2f} us that moving "
                "the bytes takes at this device's published peak: the work was not done",
            )
        self._note_late_work(bench, side)
        self.timing = timing

    def _note_late_work(self, bench: Bench, side: Side) -> None:
        for reason, message in side.late_work.items():
            self._hold_against(bench, reason, message)

    def _hold_against(self, bench: Bench, reason: str, message: str) -> None:
        """Refuse it, or note a finding where KernelBench's rules decide; raises `Refusal`."""
        if bench.settings.protocol != "kernelbench":
            raise Refusal(Status.INTEGRITY, reason, message)
        if reason not in {finding.partition(":")[0] for finding in self.findings}:
            self.findings.append(f"{reason}: {message}")

    def _sampled(self, bench: Bench, side: Side) -> Sampling:
        """Calls beside the baselines'; raises `Refusal`."""

        def verify(sealed: list[torch.Tensor], draw: Draw) -> None:
            self._verify(bench, side, sealed, draw)

        sampling = sample(
            bench,
            side,
            verify,
            seconds=bench.settings.timing_seconds,
            relative_width=bench.settings.relative_width,
        )
        self.made += sampling.blocks
        self.device_seconds += sampling.device_seconds
        return sampling


def _is_early(sampling: Sampling) -> bool:
    """Whether the candidate was late to get ready for its calls."""
    eager = sampling.baselines[BaselineName.EAGER]
    return works_early(sampling.candidate.prepare_us, eager.prepare_us)


def _make_room(bench: Bench) -> None:
    """See that the device's memory suffices for the candidate's calls and for verifying them.

    Raises `DeviceError` where a candidate that needs no more than the reference would run short.
    """
    if not bench.memory.has_free(bench.forward_bytes) or not bench.memory.can_take(
        bench.verifying_bytes
    ):
        bench.make_room()
    if not bench.memory.has_free(bench.forward_bytes):
        raise DeviceError(
            f"a call of the reference takes {bench.forward_bytes / 2**30:.1f} GiB on "
            f"{bench.device}, and less is free for a candidate"
        )


def _what_is_wrong(bench: Bench, number: int) -> str:
    changed = number - len(bench.outputs)
    return f"output {number}" if changed < 0 else f"input {changed}, as forward leaves it,"


def _copying_may_be_wrong(refusal: Refusal, side: Side) -> bool:
    """Whether copied weights may have undone what a constructor did to its own."""
    prepared = side.changed_weights or side.fit in ("ordered", "derived")
    return prepared and refusal.reason == "wrong_values"


def _is_explained(refusal: Refusal) -> bool:
    return refusal.mismatch is not None and "counterfactual" in refusal.mismatch.details


def _is_fault(refusal: Refusal) -> bool:
    """Whether it may have been a write to memory that is mapped read-only."""
    told = refusal.message + refusal.detail
    return refusal.reason in ("segfault", "sigbus") or "illegal memory access" in told
