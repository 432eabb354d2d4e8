"""One candidate on trial: its calls, what they showed, and how long they took."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from evaluator.errors import DeviceError
from evaluator.evaluation import Backend, Candidate, Status, Timing, Verdict
from evaluator.judge.builds.build_allowance import BuildAllowance
from evaluator.judge.context.construction import Construction
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.context.problem_setup import CONTEXT_BYTES
from evaluator.judge.inputs.draws import Draw
from evaluator.judge.problem.reference import flatten_arguments
from evaluator.judge.rejection import Rejection
from evaluator.judge.tampering import WRITES_BEYOND, WRITES_TO_INPUTS, explained
from evaluator.judge.timing.call_cost import call_cost
from evaluator.judge.timing.eager_slowdown import beside_eager
from evaluator.judge.timing.sampling import LEAST_BLOCKS_EVER, Sampling, sample
from evaluator.judge.timing.samplings import Samplings
from evaluator.judge.timing.timed_workers import (
    FEWEST_WORKERS,
    is_enough,
    is_large,
    most_workers,
    room_for,
)
from evaluator.judge.timing.timing_result import timing_of
from evaluator.judge.verification import SealedOutputs, Verification, is_near
from evaluator.judge.workers.allowance import Allowance
from evaluator.judge.workers.call import Call
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.judge.workers.quiescence import works_early
from evaluator.reason import WITH_WEIGHTS, Reason
from evaluator.settings import BaselineName

_PUBLIC_SEED = 1
_CALLS_OF_ANOTHER = 2
"""How many of each further worker are verified before it is timed."""
_EAGER_READS_BEYOND = "inputs do not end where memory ends: eager PyTorch itself reads beyond there"
_JUDGED_TWICE = (
    " (judged twice: with the reference's weights copied into it, and as constructed from a seed)"
)


@dataclass
class EvaluationRun:
    """What is known of the candidate in hand so far, and the steps that find out more."""

    candidate: Candidate
    builds: BuildAllowance
    context: ProblemContext
    decides: bool = True
    """False: what is wrong is a finding."""
    runner: ModuleRunner | None = None
    verified: Verification = field(default_factory=Verification)
    """What verifying its calls showed, in the judgement that counts."""
    seed: int | None = None
    """That both modules were constructed from, where it is judged as constructed; None: the public
    one."""
    timing_seconds: float = 0.0
    narrowing_seconds: float = 0.0
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    timing: Timing | None = None
    seen: dict[str, float | int] = field(default_factory=dict)
    allowance: Allowance = field(default_factory=Allowance)
    excess: Rejection | None = None
    """Why it is refused if it was what left the judge too little of a GPU's memory."""

    def end_short_of_memory(self, *runners: ModuleRunner | None) -> None:
        """End workers after the device ran short, and note whether they took too much of it."""
        running = [runner for runner in runners if runner is not None and not runner.worker.ended]
        excess = rejected_for_excess(self.context, running)
        self.excess = self.excess or excess

    def first_calls(self, runner: ModuleRunner, *, as_constructed: bool = False) -> None:
        """Import, construct and call the candidate, all calls verified; raises `Rejection`.

        First with the reference's weights. Where that leads to wrong values, and copying may have
        undone what the constructor prepared, once more in another worker, as constructed. Why the
        first was wrong is looked for only where that is wrong, too, and not explained.

        `as_constructed`: at once as constructed, because it was judged so before.
        """
        before = self.verified.copy()
        rejection = self._rejected(runner, as_constructed=as_constructed, explains_prepared=False)
        if rejection is None:
            return
        if not _may_be_undone(runner, rejection):
            raise rejection
        # What copied weights led to says nothing of the second judgement.
        self._begin_again(before)
        second = self._rejected(self.context.workers.new(), as_constructed=True)
        if second is None:
            return
        mismatch = second.mismatch if second.reason is Reason.WRONG_VALUES else None
        if mismatch is not None and "counterfactual" in mismatch.details:
            rejection = second
        elif self.allowance.left_s:
            self._begin_again(before)
            rejection = self._rejected(self.context.workers.new()) or rejection
        rejection.message += _judged_again(second)
        raise rejection

    def _begin_again(self, before: Verification) -> None:
        if self.runner is not None:
            self.runner.close()
        self.verified = before.copy()

    def _rejected(
        self,
        runner: ModuleRunner,
        *,
        as_constructed: bool = False,
        explains_prepared: bool = True,
    ) -> Rejection | None:
        """Why its first calls are refused. `as_constructed`: judged with what its constructor made
        of a secret seed."""
        self.runner = runner
        before, ends = self.verified.copy(), self.context.draws.ends
        try:
            self._load(runner)
            self._construct(runner, as_constructed=as_constructed)
            self.verified.explains = explains_prepared or not _is_prepared(runner)
            self._call_first(runner)
            self.verified.explains = True
        except Rejection as rejection:
            if self.context.draws.ends == ends:
                return rejection
            self.notes.append(_EAGER_READS_BEYOND)
            self._begin_again(before)
            return self._rejected(
                self.context.workers.new(),
                as_constructed=as_constructed,
                explains_prepared=explains_prepared,
            )
        return None

    def _call_first(self, runner: ModuleRunner) -> None:
        if self.context.sequence is not None:
            self.context.sequence.begin(runner)
        self.verified.begin()
        _make_room(self.context, runner)
        # The worker has a module now; what it computes from here on is what counts.
        self.context.draws.begin()
        for index in range(max(self.context.rules.first_calls, self.context.draws.ends)):
            draw = self.context.draws.next(near=index == 1, at_end=index)
            try:
                self._verified_call(runner, draw)
            except Rejection as rejection:
                why = explained(self.context, self.candidate, draw, self.builds.build, rejection)
                raise why or rejection from None
        is_wrong = any(finding.startswith(Reason.WRONG_LATER) for finding in self.findings)
        if self.context.rules.in_one_process and self.context.sequence is None and not is_wrong:
            self._note_kept_address(runner)

    def _load(self, runner: ModuleRunner, *others: ModuleRunner) -> None:
        for each in (runner, *others):
            each.said.allowance = self.allowance
        beside = self.context.facts.runs_reference_beside
        self.context.workers.load(
            runner,
            self.candidate.source,
            "ModelNew",
            triton=self.candidate.backend is Backend.TRITON,
            build=self.builds.build,
            reference=self.context.reference.source if beside else None,
            others=others,
        )

    def _verified_call(self, runner: ModuleRunner, draw: Draw) -> None:
        """Raises `Rejection`, and ends the worker where it is the call that fails."""
        self.verified.made += 1
        try:
            call, outputs, borrowed = self._call(runner, draw)
        except Rejection:
            runner.close()
            raise
        runner.called_s = call.wall_us / 1e6
        runner.note_memory()
        if self.decides:
            self.verified.verify(outputs)
        else:
            self.verified.judged += 1
            self._note_wrong(outputs, "a call at a size that is only timed")
        if borrowed is not None:
            self._hold_against(borrowed.reason, borrowed.message)
        self._note_modified_inputs(outputs.draw)

    def _note_wrong(self, outputs: SealedOutputs, call: str) -> None:
        if not self._is_near(outputs):
            self._hold_against(Reason.WRONG_LATER, f"{call} was wrong")

    def _is_near(self, outputs: SealedOutputs) -> bool:
        """Off by no more than a library may be, or than a quantised task allows."""
        near = is_near(outputs.actual, self.context.expected(outputs.draw))
        own = self.context.reference.problem.thresholds
        return near or (bool(own) and self.verified.is_right(outputs))

    def _note_modified_inputs(self, draw: Draw) -> None:
        # On a GPU a worker can make what it maps writable.
        writable = self.context.draws.writable or self.context.device.type == "cuda"
        lent = writable and not self.context.reference.changes_inputs
        if lent and not self.context.draws.holds(draw):
            self._hold_against(Reason.INPUT_MODIFIED, WRITES_TO_INPUTS)
        if writable and not draw.order.holds(around=True):
            self._hold_against(Reason.MEMORY_ERROR, WRITES_BEYOND, Status.RUNTIME_ERROR)

    def _note_kept_address(self, runner: ModuleRunner) -> None:
        """Where its inputs always lie in one place, as KernelBench's do, nothing else shows it."""
        _, outputs, _ = self._call(runner, self.context.draws.elsewhere())
        one_seed = self.context.rules.one_seed
        if not (self._is_near(outputs) if one_seed else self.verified.is_right(outputs)):
            first = "are of another seed, or lie" if one_seed else "lie"
            self._hold_against(
                Reason.KEPT_ADDRESS,
                f"results are wrong where the inputs {first} at another address than in the first "
                "calls",
            )
        # In the trials on a GPU a candidate had copies of its own.
        self._note_modified_inputs(outputs.draw)

    def _call(
        self, runner: ModuleRunner, draw: Draw
    ) -> tuple[Call, SealedOutputs, Rejection | None]:
        context, reference = self.context, runner.has_reference
        try:
            with context.calling(runner, draw, reference=reference) as call:
                sealed = context.sealed_outputs(runner, call.reply, draw, reference=reference)
                borrowed = context.rejected_as_borrowed(runner, call.reply)
            return call, _parted(context, runner, draw, sealed), borrowed
        except Rejection as rejection:
            if rejection.reason != "tensor_subclass" or runner.looks_at_results:
                raise
            self._hold_against(rejection.reason, rejection.message)
        runner.looks_at_results = True
        if context.draws.writable:
            draw = replace(draw, order=context.draws.lay_again(draw))
        return self._call(runner, draw)

    def _construct(
        self, runner: ModuleRunner, *, as_constructed: bool, seed: int | None = None
    ) -> None:
        """Give both modules equal weights, those of a secret seed or `seed`; raises `Rejection`."""
        reference = self.context.reference
        if self.context.rules.in_one_process:
            # As KernelBench does: both as the public seed constructs them, moved to the device and
            # the task's dtype before each call, under the flags that the candidate leaves behind.
            reference.construct_publicly()
            reference.set_state(reference.seeded)
            Construction(self.context.setup, {}).on(runner)
            runner.fit, runner.steps, runner.rejects_late_work = "seeded", ("cast",), False
            reference.flags = runner.flags
            return
        if not as_constructed:
            reference.construct_publicly()
            reference.randomise(secrets.randbits(62) if seed is None else seed)
            if Construction(self.context.setup, reference.state()).on(runner) != "unmatched":
                return
        self.seed = seed = secrets.randbits(62) if seed is None else seed
        reference.construct(seed)
        if fixed := reference.fixed_parameters():
            raise Rejection(
                Status.INTEGRITY,
                Reason.WEIGHTS_UNMATCHED,
                "its parameters are the reference's neither by name nor by order and shape, and "
                f"`{fixed[0]}` follows from no seed: register the reference's parameters",
            )
        Construction(self.context.setup, {}, seed=seed).on(runner)
        runner.fit = "seeded"

    def at_hidden_sizes(self, hidden: ProblemContext, *, another: bool) -> None:
        """The same in a worker of its own, at sizes that the candidate's author was not shown.

        `another`: they are not the last ones.
        """
        visible = self.context, self.runner
        self.context = hidden
        try:
            self.first_calls(self.context.workers.new(another=another))
            if self.runner is not None:
                self._note_late_work(self.runner)
        except Rejection as rejection:
            shapes = " and ".join(
                str(tuple(t.shape))
                for t in flatten_arguments(hidden.draws.values_of(hidden.draws.plain()))
            )
            rejection.message = f"with other sizes, inputs of shape {shapes}: {rejection.message}"
            raise
        except (DeviceError, torch.OutOfMemoryError):
            self.end_short_of_memory(self.runner)
            raise
        finally:
            if self.runner is not None:
                self.runner.close()
            self.context, self.runner = visible

    def with_weights(self, path: Path) -> None:
        """The first calls once more, with weights that a user has; raises `Rejection`."""
        reference = self.context.reference
        with self._afterwards(f"{WITH_WEIGHTS} {path.name}") as runner:
            reference.construct_publicly()
            reference.load(path)
            if Construction(self.context.setup, reference.state()).on(runner) == "unmatched":
                message = "its parameters do not match the reference's by name, order or shape"
                raise Rejection(Status.INTEGRITY, Reason.WEIGHTS_UNMATCHED, message)
            self._call_first(runner)

    @contextmanager
    def _afterwards(self, why: str) -> Iterator[ModuleRunner]:
        """A worker of its own once the one that was timed has ended. A `Rejection` says why."""
        assert self.runner is not None
        with self.context.memory.settled_after():
            self.runner.worker.end()
        runner = self.context.workers.new()
        try:
            self._load(runner)
            yield runner
        except Rejection as rejection:
            rejection.message += f" ({why})"
            raise
        finally:
            runner.close()

    def time(self, runner: ModuleRunner) -> None:
        """Time the candidate beside its baselines, some calls verified; raises `Rejection`.

        What copied weights undo may show in few calls only, so that the first ones were right. Then
        it is judged and timed once more, as constructed.
        """
        begin = time.monotonic()
        try:
            self._time(runner)
        except Rejection as rejection:
            if not _may_be_undone(runner, rejection):
                raise
            second = self._rejected_as_constructed()
            if second is not None:
                rejection.message += _judged_again(second)
                raise
        finally:
            self.timing_seconds = time.monotonic() - begin

    def _rejected_as_constructed(self) -> Rejection | None:
        self._begin_again(Verification())
        rejection = self._rejected(self.context.workers.new(), as_constructed=True)
        if rejection is None:
            assert self.runner is not None
            try:
                self._time(self.runner)
            except Rejection as later:
                return later
        return rejection

    def _time(self, runner: ModuleRunner) -> None:
        samplings = self._sampled_in_workers(runner)
        context, self.seen = self.context, dict(samplings[-1].seen)
        if context.device.type == "cuda":
            workers = Samplings(samplings, context.device)
            self.seen["timed_beyond_device_us"] = workers.hidden_us(None)
            self.seen["timed_eager_beyond_device_us"] = workers.hidden_us(BaselineName.EAGER)
        self.narrowing_seconds = sum(each.narrowing_seconds for each in samplings)
        known = context.bounds, context.settings, context.work
        timing, notes = timing_of(samplings, *known)
        if timing.launch_bound and context.device.type == "cpu":
            # Where it was measured on a busier machine, the operators seem to take longer.
            cost = call_cost(context, anew=True)
            samplings = [replace(each, cost=cost) for each in samplings]
            timing, notes = timing_of(samplings, *known)
        is_ours = context.device.type == "cuda" and context.rules.rejects
        if is_ours and timing.verdict is Verdict.FASTER:
            with context.memory.settled_after():
                runner.worker.end()
            timing, note = beside_eager(context, samplings, timing)
            notes += [note] if note else []
        self.notes += notes
        self.notes += context.baselines.notes.values()
        if timing.floor_us is not None and timing.latency_us < timing.floor_us:
            self._hold_against(
                Reason.BELOW_FLOOR,
                f"{timing.latency_us:.2f} us is less than the {timing.floor_us:.2f} us that moving "
                "the bytes takes at this device's published peak: the work was not done",
            )
        self._note_late_work(runner)
        self.timing = timing

    def decide(self) -> None:
        """Where some error was near its limit, judge calls that are the same for each candidate and
        each time, in a worker of their own; raises `Rejection`.

        A candidate that knows these calls gains a factor of `_SLACK`, and no faster arithmetic.
        """
        if self.runner is None or not self.verified.is_open(self.context):
            return
        self.verified.begin_deciding()
        with self._afterwards("in calls that decide where an error is near its limit") as runner:
            self._construct(runner, as_constructed=self.seed is not None, seed=_PUBLIC_SEED)
            self.context.draws.begin()
            for draw in self.context.draws.fixed():
                self._verified_call(runner, draw)

    def _note_late_work(self, runner: ModuleRunner) -> None:
        for reason, message in runner.late_work.items():
            self._hold_against(reason, message)

    def _hold_against(
        self, reason: Reason, message: str, status: Status = Status.INTEGRITY
    ) -> None:
        """Refuse it, or note a finding where KernelBench's rules decide; raises `Rejection`."""
        if self.context.rules.rejects:
            raise Rejection(status, reason, message)
        if reason not in {finding.partition(":")[0] for finding in self.findings}:
            self.findings.append(f"{reason}: {message}")

    def _sampled_in_workers(self, runner: ModuleRunner) -> list[Sampling]:
        """Samplings of `runner`, and of further workers until the interval is narrow.

        At most as many as the time allows, a quarter of a second each; those that surely follow
        start together. One alone in half a second, under KernelBench's protocol, which measures in
        one process, and where there is no memory for another. Raises `Rejection`.
        """
        context = self.context
        most = most_workers(context.settings)
        context.baselines.start_eager(0)
        # Another one may take as long as all did until now, and its timed calls.
        each_s = self.allowance.spent_s + LEAST_BLOCKS_EVER * runner.called_s
        in_time = int(min(most, self.allowance.left_s / each_s))
        count = in_time if in_time >= FEWEST_WORKERS and room_for(context, runner, 1) else 1
        seconds = context.settings.timing_seconds / count
        samplings, large = [self._sampled(runner, seconds, (), count > 1)], is_large(runner)
        while len(samplings) < count and not is_enough(context, samplings):
            timed = len(samplings)
            wanted = (FEWEST_WORKERS if timed < FEWEST_WORKERS else count) - timed
            if large:
                with context.memory.settled_after():
                    context.baselines.end_further()
                    if context.sequence is None:
                        runner.close()
            more = room_for(context, runner, 1 if large else wanted)
            if not more:
                count = timed
                break
            context.baselines.start_eager(timed, more)
            with self._further_workers(runner, more) as others:
                for waiting in (runner, *others):
                    waiting.stand_still()
                for other in others:
                    if not is_enough(context, samplings):
                        self._first_calls_of_another(other)
                        samplings.append(self._sampled(other, seconds, tuple(samplings), True))
                    with context.memory.settled_after():
                        other.close()
        if context.sequence is not None and len(samplings) > 1:
            runner.construct_again()
            context.sequence.begin(runner)
        if count < most:
            self.notes.append(f"no time or memory for more workers: timed in {count} of {most}")
        return samplings

    @contextmanager
    def _further_workers(self, runner: ModuleRunner, count: int) -> Iterator[list[ModuleRunner]]:
        others: list[ModuleRunner] = []
        try:
            for _ in range(count):
                others.append(self.context.workers.new())
            with _of_another_worker():
                self._load(*others)
                runner.construct_on(*others)
            for other in others:
                other.memory_bytes = runner.memory_bytes
                other.fit, other.steps = runner.fit, runner.steps
                other.rejects_late_work = runner.rejects_late_work
                other.looks_at_results = runner.looks_at_results
            yield others
        except (DeviceError, torch.OutOfMemoryError):
            self.end_short_of_memory(*others)
            raise
        finally:
            for other in others:
                other.close()

    def _first_calls_of_another(self, runner: ModuleRunner) -> None:
        if self.context.sequence is not None:
            self.context.sequence.begin(runner)
        with _of_another_worker():
            for _ in range(_CALLS_OF_ANOTHER):
                self._verified_call(runner, self.context.draws.next())

    def _sampled(
        self,
        runner: ModuleRunner,
        seconds: float,
        before: Sequence[Sampling],
        several: bool,
    ) -> Sampling:
        """Calls of one of the candidate's workers beside the baselines', timed for `seconds`,
        after those of the workers before it. `several`: it is one of several. Raises
        `Rejection`."""

        def verify(sealed: list[torch.Tensor], draw: Draw) -> None:
            outputs = SealedOutputs(self.context, runner, draw, sealed)
            if self.context.rules.rejects:
                self.verified.verify(outputs)
            else:
                self._note_wrong(outputs, "a later call, while it was timed,")

        # On a busy machine one of two workers may get its processor late for a whole short sample,
        # hardly twice. Of the first nothing counts, so being early in it alone is no gain.
        for _ in range(2):
            sampling = sample(
                self.context,
                runner,
                verify,
                number=len(before),
                several=several,
                held=before[0].held if before else None,
                seconds=seconds,
            )
            self.verified.made += sampling.blocks
            if not _is_early(sampling):
                return sampling
        self._hold_against(
            Reason.WORK_BEFORE_START,
            "the candidate works outside its calls: before they start, or after they returned",
        )
        return sampling


@contextmanager
def _of_another_worker() -> Iterator[None]:
    try:
        yield
    except Rejection as rejection:
        rejection.message += " (in another fresh worker; it was right in the first one)"
        raise


def _parted(
    context: ProblemContext, runner: ModuleRunner, draw: Draw, sealed: list[torch.Tensor]
) -> SealedOutputs:
    if not runner.has_reference:
        return SealedOutputs(context, runner, draw, sealed)
    count = len(context.facts.outputs)
    beside = None if any(t.is_meta for t in sealed) else sealed[-count:]
    return SealedOutputs(context, runner, draw, sealed[:-count], beside)


def _is_early(sampling: Sampling) -> bool:
    eager = sampling.baselines[BaselineName.EAGER]
    return works_early(sampling.candidate.prepare_us, eager.prepare_us)


def _make_room(context: ProblemContext, runner: ModuleRunner) -> None:
    """See that the device's memory suffices for the candidate's calls and for verifying them.

    Raises `DeviceError` where a candidate that needs no more than the reference would run short.
    """
    if not context.memory.has_free(context.facts.forward_bytes) or not context.memory.can_take(
        context.memory.verifying_bytes
    ):
        runner.note_memory()
        context.make_room()
        runner.watch_memory()
    if not context.memory.has_free(context.facts.forward_bytes):
        raise DeviceError(
            f"a call of the reference takes {context.facts.forward_bytes / 2**30:.1f} GiB on "
            f"{context.device}, and less is free for a candidate"
        )


def _is_prepared(runner: ModuleRunner) -> bool:
    return runner.changed_weights or runner.fit in ("ordered", "derived")


def _may_be_undone(runner: ModuleRunner, rejection: Rejection) -> bool:
    return _is_prepared(runner) and rejection.reason is Reason.WRONG_VALUES


def _judged_again(second: Rejection) -> str:
    if second.reason is Reason.WRONG_VALUES:
        return _JUDGED_TWICE
    return f" (judged again as constructed from a seed: {second.message})"


_MORE_THAN_REFERENCE = 1.5
"""A library may keep half as much again as its tensors take."""


def rejected_for_excess(
    context: ProblemContext, runners: Sequence[ModuleRunner]
) -> Rejection | None:
    """End a candidate's workers after the device ran short; why it is rejected, if at all.

    It did if they held far more than the reference takes, and the judge has enough without them.
    """
    with context.memory.freed() as freed:
        for runner in runners:
            runner.close()
    held_bytes = sum(freed)
    allowed_bytes = len(runners) * (
        _MORE_THAN_REFERENCE * context.setup.worker_bytes + CONTEXT_BYTES
    )
    wanted_bytes = context.baselines.wanted_bytes(1)
    if held_bytes <= allowed_bytes or not context.memory.has_free(wanted_bytes):
        return None
    return Rejection(
        Status.RUNTIME_ERROR,
        Reason.OUT_OF_MEMORY,
        f"the candidate held {held_bytes / 2**30:.1f} GiB of the device's memory, and the judge "
        f"ran short: the reference takes {context.setup.worker_bytes / 2**30:.1f} GiB",
    )
