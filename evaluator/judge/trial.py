"""One candidate on trial: its calls, what they showed, and how long they took."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch

from evaluator.errors import DeviceError
from evaluator.evaluation import Backend, Candidate, Status, Timing, Verdict
from evaluator.judge.builds.build_allowance import BuildAllowance
from evaluator.judge.context.construction import Construction
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.context.sealing import refused_as_borrowed, sealed_outputs
from evaluator.judge.hoarding import ended_for_hoarding
from evaluator.judge.inputs.draws import Draw
from evaluator.judge.problem.reference import flatten_arguments
from evaluator.judge.refusal import Refusal
from evaluator.judge.tampering import WRITES_TO_INPUTS, refused_as_writing
from evaluator.judge.timing.eager_slowdown import slowed_note
from evaluator.judge.timing.sampling import Sampling, sample
from evaluator.judge.timing.samplings import Samplings
from evaluator.judge.timing.timed_workers import sampled_in_workers
from evaluator.judge.timing.timing_result import timing_of
from evaluator.judge.verification import Verification, is_near
from evaluator.judge.workers.call import Call
from evaluator.judge.workers.quiescence import works_early
from evaluator.judge.workers.side import Side
from evaluator.reason import Reason
from evaluator.settings import BaselineName

_CALLS_OF_ANOTHER = 2
"""Of each further worker so many are verified before it is timed."""
_JUDGED_TWICE = (
    " (judged twice: with the reference's weights copied into it, and as constructed from a seed)"
)


@dataclass
class Trial:
    """What is known of the candidate in hand so far, and the steps that find out more."""

    candidate: Candidate
    builds: BuildAllowance
    side: Side | None = None
    """The worker that it runs in."""
    verified: Verification = field(default_factory=Verification)
    """What verifying its calls showed, in the judgement that counts."""
    seed: int | None = None
    """That both sides were constructed from, where it is judged as constructed, and not the public
    one."""
    device_seconds: float = 0.0
    timing_seconds: float = 0.0
    narrowing_seconds: float = 0.0
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    timing: Timing | None = None
    seen: dict[str, float | int] = field(default_factory=dict)
    hoarded: Refusal | None = None
    """Why it is refused if it was what left the judge too little of a GPU's memory."""

    def end_short_of_memory(self, context: ProblemContext, *sides: Side | None) -> None:
        """End workers after the device ran short, and note whether they hoarded its memory."""
        running = [side for side in sides if side is not None and not side.worker.ended]
        hoarded = ended_for_hoarding(context, running)
        self.hoarded = self.hoarded or hoarded

    def first_calls(
        self, context: ProblemContext, side: Side, *, as_constructed: bool = False
    ) -> None:
        """Import, construct and call the candidate, all calls verified; raises `Refusal`.

        First with the reference's weights. Where that leads to wrong values, and copying may have
        undone what the constructor prepared, once more in another worker, as constructed. Why the
        first was wrong is looked for only where that is wrong, too, and not explained.

        `as_constructed`: at once as constructed, because it was judged so before.
        """
        before = self.verified.copy()
        refusal = self._refused(
            context, side, as_constructed=as_constructed, explains_prepared=False
        )
        if refusal is None:
            return
        if not _may_be_undone(side, refusal):
            raise refusal
        # What copied weights led to says nothing of the second judgement.
        self._begin_again(before)
        second = self._refused(context, context.workers.new(), as_constructed=True)
        if second is None:
            return
        is_wrong = second.reason is Reason.WRONG_VALUES
        if is_wrong and _is_explained(second):
            refusal = second
        else:
            self._begin_again(before)
            refusal = self._refused(context, context.workers.new()) or refusal
        refusal.message += _judged_again(second)
        raise refusal

    def _begin_again(self, before: Verification) -> None:
        if self.side is not None:
            self.side.close()
        self.verified = before.copy()

    def _refused(
        self,
        context: ProblemContext,
        side: Side,
        *,
        as_constructed: bool = False,
        explains_prepared: bool = True,
    ) -> Refusal | None:
        """Why its first calls are refused. `as_constructed`: judged with what its constructor made
        of a secret seed."""
        self.side = side
        try:
            self._load(context, side)
            self._construct(context, side, as_constructed=as_constructed)
            self.verified.explains = explains_prepared or not _is_prepared(side)
            self._call_first(context, side)
            self.verified.explains = True
        except Refusal as refusal:
            return refusal
        return None

    def _call_first(self, context: ProblemContext, side: Side) -> None:
        if context.sequence is not None:
            context.sequence.begin(side)
        self.verified.begin()
        _make_room(context, side)
        # The worker has a module now; what it computes from here on is what counts.
        context.draws.begin()
        for index in range(context.rules.first_calls):
            draw = context.draws.next(near=index == 1)
            try:
                self._verified_call(context, side, draw)
            except Refusal as refusal:
                wrote = refused_as_writing(
                    context, self.candidate, draw, self.builds.build, refusal
                )
                raise wrote or refusal from None
        if context.rules.in_one_process and context.sequence is None:
            self._note_kept_address(context, side)

    def _load(self, context: ProblemContext, side: Side, *others: Side) -> None:
        context.workers.load(
            side,
            self.candidate.source,
            "ModelNew",
            triton=self.candidate.backend is Backend.TRITON,
            build=self.builds.build,
            reference=context.reference.source if context.facts.runs_reference_beside else None,
            others=others,
        )

    def _verified_call(self, context: ProblemContext, side: Side, draw: Draw) -> None:
        """Raises `Refusal`, and ends the worker where it is the call that fails."""
        self.verified.made += 1
        try:
            draw, call, sealed, borrowed = self._call(context, side, draw)
        except Refusal:
            side.close()
            raise
        self.device_seconds += call.wall_us / 1e6
        side.note_memory()
        actual, beside = _parted(context, side, sealed)
        self.verified.verify(context, side, actual, draw, beside)
        if borrowed is not None:
            self._hold_against(context, borrowed.reason, borrowed.message)
        self._note_modified_inputs(context, draw)

    def _note_modified_inputs(self, context: ProblemContext, draw: Draw) -> None:
        """Of the call just made. Raises `Refusal`."""
        # On a GPU a worker can make what it maps writable.
        writable = context.draws.writable or context.device.type == "cuda"
        lent = writable and not context.reference.changes_inputs
        if lent and not context.draws.holds(draw):
            self._hold_against(context, Reason.INPUT_MODIFIED, WRITES_TO_INPUTS)

    def _note_kept_address(self, context: ProblemContext, side: Side) -> None:
        """Where its inputs always lie in one place, as KernelBench's do, nothing tells of it."""
        draw, _, sealed, _ = self._call(context, side, context.draws.elsewhere())
        actual, beside = _parted(context, side, sealed)
        if not self.verified.is_right(context, side, actual, draw, beside):
            self._hold_against(
                context,
                Reason.KEPT_ADDRESS,
                "results are wrong where the inputs lie at another address than in the first calls",
            )
        # In the trials on a GPU a candidate had copies of its own.
        self._note_modified_inputs(context, draw)

    def _call(
        self, context: ProblemContext, side: Side, draw: Draw
    ) -> tuple[Draw, Call, list[torch.Tensor], Refusal | None]:
        """A call with what it was made of, its sealed outputs, and whether they are borrowed.

        Raises `Refusal`.
        """
        try:
            reference = side.has_reference
            with context.calling(side, draw, reference=reference) as call:
                sealed = sealed_outputs(context, side, call.reply, draw, reference=reference)
                return draw, call, sealed, refused_as_borrowed(context, side, call.reply)
        except Refusal as refusal:
            if refusal.reason != "tensor_subclass" or side.looks_at_results:
                raise
            self._hold_against(context, refusal.reason, refusal.message)
        side.looks_at_results = True
        if context.draws.writable:
            draw = replace(draw, order=context.draws.lay_again(draw))
        return self._call(context, side, draw)

    def _construct(self, context: ProblemContext, side: Side, *, as_constructed: bool) -> None:
        """Give both sides equal weights; raises `Refusal`."""
        reference = context.reference
        if context.rules.in_one_process:
            # As KernelBench does: both as the public seed constructs them, moved to the device and
            # the task's dtype before each call, under the flags that the candidate leaves behind.
            reference.construct_publicly()
            reference.set_state(reference.seeded)
            Construction(context.setup, {}).on(side)
            side.fit, side.steps, side.refuses_late_work = "seeded", ("cast",), False
            reference.flags = side.flags
            return
        if not as_constructed:
            reference.construct_publicly()
            reference.randomise(secrets.randbits(62))
            if Construction(context.setup, reference.state()).on(side) != "unmatched":
                return
        self.seed = seed = secrets.randbits(62)
        reference.construct(seed)
        if fixed := reference.fixed_parameters():
            raise Refusal(
                Status.INTEGRITY,
                Reason.WEIGHTS_UNMATCHED,
                "its parameters are the reference's neither by name nor by order and shape, and "
                f"`{fixed[0]}` follows from no seed: register the reference's parameters",
            )
        Construction(context.setup, {}, seed=seed).on(side)
        side.fit = "seeded"

    def at_hidden_sizes(self, context: ProblemContext, *, another: bool = False) -> None:
        """The same in a worker of its own, at sizes that the candidate's author was not shown.

        `another`: they are not the last ones.
        """
        visible = self.side
        try:
            self.first_calls(context, context.workers.new(another=another))
            if self.side is not None:
                self._note_late_work(context, self.side)
        except Refusal as refusal:
            shapes = " and ".join(
                str(tuple(t.shape))
                for t in flatten_arguments(context.draws.values_of(context.draws.plain()))
            )
            refusal.message = f"with other sizes, inputs of shape {shapes}: {refusal.message}"
            raise
        except (DeviceError, torch.OutOfMemoryError):
            self.end_short_of_memory(context, self.side)
            raise
        finally:
            if self.side is not None:
                self.side.close()
            self.side = visible

    def time(self, context: ProblemContext, side: Side) -> None:
        """Time the candidate beside its baselines, some calls verified; raises `Refusal`.

        What copied weights undo may show in few calls only, so that the first ones were right. Then
        it is judged and timed once more, as constructed.
        """
        begin = time.monotonic()
        try:
            self._time(context, side)
        except Refusal as refusal:
            if not _may_be_undone(side, refusal):
                raise
            second = self._refused_as_constructed(context)
            if second is not None:
                refusal.message += _judged_again(second)
                raise
        finally:
            self.timing_seconds = time.monotonic() - begin

    def _refused_as_constructed(self, context: ProblemContext) -> Refusal | None:
        """Why it is refused where it is judged and timed anew with what its constructor made."""
        self._begin_again(Verification())
        refusal = self._refused(context, context.workers.new(), as_constructed=True)
        if refusal is None:
            assert self.side is not None
            try:
                self._time(context, self.side)
            except Refusal as later:
                return later
        return refusal

    def _time(self, context: ProblemContext, side: Side) -> None:
        samplings, notes = sampled_in_workers(context, self, side)
        self.notes += notes
        self.seen = dict(samplings[-1].seen)
        if context.device.type == "cuda":
            workers = Samplings(samplings, context.device)
            self.seen["timed_beyond_device_us"] = workers.hidden_us(None)
            self.seen["timed_eager_beyond_device_us"] = workers.hidden_us(BaselineName.EAGER)
        self.narrowing_seconds = sum(each.narrowing_seconds for each in samplings)
        timing, notes = timing_of(
            samplings, context.bounds, context.settings, context.work.operators
        )
        is_ours = context.device.type == "cuda" and context.rules.refuses
        if is_ours and timing.verdict is Verdict.FASTER:
            with context.memory.settled_after():
                side.worker.end()
            if (note := slowed_note(context, samplings, timing.speedup_low)) is not None:
                timing = timing.model_copy(update={"verdict": Verdict.UNCLEAR})
                notes.append(note)
        self.notes += notes
        self.notes += context.baselines.notes.values()
        if timing.floor_us is not None and timing.latency_us < timing.floor_us:
            self._hold_against(
                context,
                Reason.BELOW_FLOOR,
                f"{timing.latency_us:.2f} us is less than the {timing.floor_us:.2f} us that moving "
                "the bytes takes at this device's published peak: the work was not done",
            )
        self._note_late_work(context, side)
        self.timing = timing

    def _note_late_work(self, context: ProblemContext, side: Side) -> None:
        for reason, message in side.late_work.items():
            self._hold_against(context, reason, message)

    def _hold_against(self, context: ProblemContext, reason: Reason, message: str) -> None:
        """Refuse it, or note a finding where KernelBench's rules decide; raises `Refusal`."""
        if context.rules.refuses:
            raise Refusal(Status.INTEGRITY, reason, message)
        if reason not in {finding.partition(":")[0] for finding in self.findings}:
            self.findings.append(f"{reason}: {message}")

    @contextmanager
    def further_workers(
        self, context: ProblemContext, side: Side, count: int
    ) -> Iterator[list[Side]]:
        """So many fresh workers with the module of `side`, which start together; raises `Refusal`
        and `DeviceError`."""
        others: list[Side] = []
        try:
            for _ in range(count):
                others.append(context.workers.new())
            with _of_another_worker():
                self._load(context, *others)
                side.construct_on(*others)
            for other in others:
                other.memory_bytes = side.memory_bytes
                other.fit, other.steps = side.fit, side.steps
                other.refuses_late_work = side.refuses_late_work
                other.looks_at_results = side.looks_at_results
            yield others
        except (DeviceError, torch.OutOfMemoryError):
            self.end_short_of_memory(context, *others)
            raise
        finally:
            for other in others:
                other.close()

    def first_calls_of_another(self, context: ProblemContext, side: Side) -> None:
        """The first calls of a further worker, verified; raises `Refusal`."""
        if context.sequence is not None:
            context.sequence.begin(side)
        with _of_another_worker():
            for _ in range(_CALLS_OF_ANOTHER):
                self._verified_call(context, side, context.draws.next())

    def sampled(
        self,
        context: ProblemContext,
        side: Side,
        seconds: float,
        before: Sequence[Sampling],
        several: bool,
    ) -> Sampling:
        """Calls of one of the candidate's workers beside the baselines', timed for so many seconds,
        after those of the workers before it. `several`: it is one of several. Raises `Refusal`."""

        def verify(sealed: list[torch.Tensor], draw: Draw) -> None:
            if context.rules.refuses:
                self.verified.verify(context, side, sealed, draw)
            elif not is_near(sealed, context.expected(draw)):
                message = "a later call, while it was timed, was wrong"
                self._hold_against(context, Reason.WRONG_LATER, message)

        # On a busy machine one of two workers may get its processor late for a whole short sample,
        # hardly twice. Of the first nothing counts, so nobody gains by being early in it alone.
        for _ in range(2):
            sampling = sample(
                context,
                side,
                verify,
                number=len(before),
                several=several,
                held=before[0].held if before else None,
                seconds=seconds,
            )
            self.verified.made += sampling.blocks
            self.device_seconds += sampling.device_seconds
            if not _is_early(sampling):
                return sampling
        self._hold_against(
            context,
            Reason.WORK_BEFORE_START,
            "the candidate works outside its calls: before they start, or after they returned",
        )
        return sampling


@contextmanager
def _of_another_worker() -> Iterator[None]:
    try:
        yield
    except Refusal as refusal:
        refusal.message += " (in another fresh worker; it was right in the first one)"
        raise


def _parted(
    context: ProblemContext, side: Side, sealed: list[torch.Tensor]
) -> tuple[list[torch.Tensor], list[torch.Tensor] | None]:
    """A candidate's outputs, and those of the reference beside it, if it ran."""
    if not side.has_reference:
        return sealed, None
    count = len(context.facts.outputs)
    actual, beside = sealed[:-count], sealed[-count:]
    return actual, None if any(t.is_meta for t in sealed) else beside


def _is_early(sampling: Sampling) -> bool:
    """Whether the candidate was late to get ready for its calls."""
    eager = sampling.baselines[BaselineName.EAGER]
    return works_early(sampling.candidate.prepare_us, eager.prepare_us)


def _make_room(context: ProblemContext, side: Side) -> None:
    """See that the device's memory suffices for the candidate's calls and for verifying them.

    Raises `DeviceError` where a candidate that needs no more than the reference would run short.
    """
    if not context.memory.has_free(context.facts.forward_bytes) or not context.memory.can_take(
        context.memory.verifying_bytes
    ):
        side.note_memory()
        context.make_room()
        side.watch_memory()
    if not context.memory.has_free(context.facts.forward_bytes):
        raise DeviceError(
            f"a call of the reference takes {context.facts.forward_bytes / 2**30:.1f} GiB on "
            f"{context.device}, and less is free for a candidate"
        )


def _is_prepared(side: Side) -> bool:
    """Whether copied weights may have undone what a constructor did to its own."""
    return side.changed_weights or side.fit in ("ordered", "derived")


def _may_be_undone(side: Side, refusal: Refusal) -> bool:
    """Whether values are wrong, and copied weights may be why."""
    return _is_prepared(side) and refusal.reason is Reason.WRONG_VALUES


def _judged_again(second: Refusal) -> str:
    """What to add to the first refusal after this second one, as constructed from a seed."""
    if second.reason is Reason.WRONG_VALUES:
        return _JUDGED_TWICE
    return f" (judged again as constructed from a seed: {second.message})"


def _is_explained(refusal: Refusal) -> bool:
    return refusal.mismatch is not None and "counterfactual" in refusal.mismatch.details
