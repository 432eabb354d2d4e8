"""The judge: owns the reference, the seeds, the inputs, the clock and the verdict.

It never runs candidate code. What comes out of a worker is bytes in a slot; everything else that a
worker says is a claim, used for words or bounded by what the judge sees itself.
"""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import torch

from evaluator.builder.builder import Builder
from evaluator.errors import DeviceError
from evaluator.evaluation import (
    Backend,
    DeviceMemory,
    Evaluation,
    EvaluationRequest,
    ProblemRequest,
    Seconds,
    Status,
    success_message,
)
from evaluator.hardware.conditions import conditions
from evaluator.hardware.device_lock import device_lock
from evaluator.hardware.devices import describe
from evaluator.hardware.host_memory import available_bytes, free_share, growth_limited
from evaluator.ipc.wire import Kind
from evaluator.judge.builds.build_allowance import BuildAllowance
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.evaluation_run import EvaluationRun
from evaluator.judge.kept_problems import MOST_PROBLEMS
from evaluator.judge.problem.footprint import footprint_of
from evaluator.judge.problem.reference import DTYPES
from evaluator.judge.rejection import Rejection
from evaluator.judge.timing.timed_workers import most_workers
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.judge.workers.process import WorkerLimits, worker_limits
from evaluator.judge.workers.zygote import Zygote
from evaluator.rival import CheckRequest, Rival
from evaluator.settings import BaselineName
from evaluator.walls.demands import insist

_FREE_ON_DEVICE = 0.5
"""Share of a GPU's memory that other problems leave to the one in hand and its candidate."""
_FREE_ON_HOST = 0.25
"""The same of the machine's, which others use too."""
_ASKED_FOR = re.compile(r"Tried to allocate ([0-9.]+ \w+)")


class Judge:
    """Judges one candidate after the other on one device. Not safe for several threads."""

    def __init__(
        self,
        device: torch.device,
        builder: Builder,
        zygote: Zygote | None = None,
        tell: Callable[[Kind, str], None] = lambda *_: None,
    ) -> None:
        """`zygote`: one for this device that was started ahead, the judge's own from now on.
        `tell` hears who holds the device before the judge waits for another command (WAITS), and
        what an evaluation has come to (STAGE)."""
        self.device = device
        self._tell = tell
        self._stage = partial(tell, Kind.STAGE)
        self._builder = builder
        self._zygote = zygote
        self._limits: WorkerLimits | None = None
        self._contexts: dict[tuple[object, ...], ProblemContext] = {}

    def check(
        self, request: CheckRequest, figures: Callable[[ProblemContext, CheckRequest], Rival]
    ) -> Rival:
        """Set a problem up with its hidden sizes and its eager baseline, which later evaluations
        use. Raises `InfrastructureError` where one of them cannot be had."""
        with self.holding(request.settings.device):
            if request.rival == "compile" and self._zygote and self.device.type == "cuda":
                self._zygote.compilers.begin(worker_limits(self.device, None))
            context = self.context_for(request)
            try:
                context.hidden(request.hidden_references)
                if request.weights is not None:
                    context.reference.load(request.weights)
                baseline = context.baselines.get(BaselineName.EAGER)
                if baseline is not None and request.settings.isolation == "strict":
                    insist(baseline.worker.isolation, self._builder.isolation)
                return figures(context, request)
            except (DeviceError, torch.OutOfMemoryError) as error:
                shortage = error.with_traceback(None)
            finally:
                self._free_cached_memory()
            self._make_room_for(request, shortage)
        return self.check(request, figures)

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate. Raises `InfrastructureError` when our side breaks."""
        begin = time.monotonic()
        builds = BuildAllowance(self._builder, request.settings.build_timeout_s)
        rejection: Rejection | None = None
        with self.holding(request.settings.device) as waiting_s:
            context = self.context_for(request)
            context.workers.zygote.imports_triton |= request.candidate.backend is Backend.TRITON
            run = EvaluationRun(request.candidate, builds, context, decides=request.decides)
            run.allowance.limit_s = request.settings.candidate_timeout_s
            run.verified.stage = self._stage
            shortage: Exception | None = None
            try:
                # On a GPU the next worker gets ready while this one is timed.
                more = self.device.type == "cpu" and most_workers(request.settings) > 1
                run.runner = context.workers.new(another=more or bool(request.hidden_references))
                if request.settings.isolation == "strict":
                    insist(run.runner.worker.isolation, self._builder.isolation)
                self._try(run, run.runner, request)
            except Rejection as reason:
                rejection = reason
            except (DeviceError, torch.OutOfMemoryError) as error:
                shortage = error.with_traceback(None)
                run.end_short_of_memory(run.runner)
            finally:
                runner = run.runner
                memory = _memory(context, runner)
                if runner is not None:
                    runner.close()
                # Each takes a GPU's memory, and with many of them a verdict takes twice as long.
                context.baselines.end_further()
                self._free_cached_memory()
            if shortage is not None:
                # With other problems set up, room is made first and the candidate tried again.
                if len(self._contexts) == 1:
                    rejection = run.excess
                if rejection is None:
                    self._make_room_for(request, shortage)
                else:
                    self.forget(request)
            state = conditions(request.settings.device)
        if shortage is not None and rejection is None:
            return self.evaluate(request)
        compilers = self._builder.isolation if runner and runner.build is not None else ()
        seconds = Seconds(
            build=builds.seconds,
            judge=time.monotonic() - begin - builds.seconds - waiting_s,
            waiting=waiting_s,
            timing=run.timing_seconds,
            narrowing=run.narrowing_seconds,
            device=run.allowance.spent_s,
        )
        return Evaluation(
            status=rejection.status if rejection else Status.CORRECT,
            reason=rejection.reason if rejection else "",
            message=rejection.message if rejection else success_message(run.timing),
            detail=rejection.detail if rejection else "",
            weights="none" if runner is None or runner.fit == "unmatched" else runner.fit,
            build=runner.build if runner else None,
            correctness=run.verified.correctness(rejection.mismatch if rejection else None),
            timing=run.timing if rejection is None else None,
            memory=memory,
            isolation=(*runner.worker.isolation, *compilers) if runner else (),
            device=describe(request.settings.device).name,
            conditions=state
            | run.seen
            | {
                "threads": context.workers.threads,
                "persisting_l2_reset": context.flush.persisting_l2_reset,
                "problems_set_up": len(self._contexts),
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
            seeds=tuple(run.verified.seeds),
            findings=tuple(run.findings) if rejection is None else (),
            notes=(*context.facts.notes, *run.notes),
            seconds=seconds,
        )

    @contextmanager
    def holding(self, device: str) -> Iterator[float]:
        """Hold a device alone; the seconds that it was another's. After the block a warm worker is
        made for the next candidate, and the judge does nothing there once the device is given
        back."""
        with ExitStack() as held:
            asked = time.monotonic()
            held.enter_context(device_lock(device, partial(self._tell, Kind.WAITS)))
            try:
                yield time.monotonic() - asked
            finally:
                if self._zygote is not None and self._limits is not None:
                    self._zygote.pool.prepare(self._limits, then=held.pop_all().close)

    def context_for(self, request: ProblemRequest) -> ProblemContext:
        if self._zygote is None or not self._zygote.alive:
            self.close()
            self._zygote = Zygote(device=str(self.device))
        # If there is none yet, it is made while the problem is set up.
        self._limits = worker_limits(self.device, request.settings.memory_limit_bytes)
        self._zygote.pool.prepare(self._limits)
        key = request.context_key
        context = self._contexts.pop(key, None)
        if context is not None and request.settings.fresh_workers:
            context.close()
            context = None
        while self._contexts and (len(self._contexts) >= MOST_PROBLEMS or self._memory_is_short()):
            self._forget_contexts(keep=len(self._contexts) - 1)
        if context is None:
            self._stage(f"setting {request.problem_id} up")
            context = self._new_context(request)
        context.settings = request.settings
        # For two pairs of workers, of which a third takes one's place. In one a verdict is often
        # unclear, so the others are rather set up anew when they come again.
        wanted = context.baselines.wanted_bytes(min(2, most_workers(request.settings)))
        if not context.memory.is_enough_for(wanted):
            wanted = context.baselines.wanted_bytes(1)
        while self._contexts and not context.memory.has_free(wanted):
            self._forget_contexts(keep=len(self._contexts) - 1)
        self._contexts[key] = context
        return context

    def _new_context(self, request: ProblemRequest) -> ProblemContext:
        assert self._zygote is not None
        own_bytes = None
        if self.device.type == "cpu":
            # A process that takes too much of a machine's memory is killed without an exception.
            own_bytes = self._insist_on_memory(request)
        try:
            with growth_limited(own_bytes):
                return ProblemContext(request, self.device, self._zygote)
        except (DeviceError, torch.OutOfMemoryError) as error:
            # The others' inputs and workers, or the warm worker, may be what leaves no room.
            if not self._zygote.pool.drop() and not self._contexts:
                raise self._shortage(request, error) from None
        self._forget_contexts(keep=0)
        try:
            return ProblemContext(request, self.device, self._zygote)
        except torch.OutOfMemoryError as error:
            raise self._shortage(request, error) from None

    def _insist_on_memory(self, request: ProblemRequest) -> int | None:
        """How much of this machine's memory the judge may take for a problem; None: not known.

        Raises `DeviceError` where the problem needs more than there is.
        """
        needed = footprint_of(request.reference, DTYPES[request.settings.precision])
        free = available_bytes()
        if needed is None or free is None:
            return free
        if needed.needed_on(self.device) > free:
            self._forget_contexts(keep=0)
            free = available_bytes() or 0
        if needed.needed_on(self.device) > free:
            raise self._shortage(request, torch.OutOfMemoryError())
        return free - needed.workers

    def _shortage(self, request: ProblemRequest, error: Exception) -> DeviceError:
        if not isinstance(error, torch.OutOfMemoryError):
            return DeviceError(str(error))
        self._free_cached_memory()
        needed = footprint_of(request.reference, DTYPES[request.settings.precision])
        about = "more memory than there is"
        if needed:
            about = f"about {needed.needed_on(self.device) / 2**30:.1f} GiB"
        if self.device.type == "cuda":
            free, total = torch.cuda.mem_get_info(self.device)
        else:
            free, total = available_bytes() or 0, describe("cpu").memory_bytes
        asked = _ASKED_FOR.search(str(error))
        more = f"; with what it had taken, {asked[1]} more could not be had" if asked else ""
        return DeviceError(
            f"{request.problem_id} needs {about} to be judged, and {free / 2**30:.1f} of the "
            f"{total / 2**30:.1f} GiB of {self.device} are free{more}"
        )

    def forget(self, request: ProblemRequest) -> None:
        """Set a problem up anew the next time, after an error that may have left it in any state.

        Raises what the device raises where that error has spoilt it for this process.
        """
        context = self._contexts.pop(request.context_key, None)
        if context is not None:
            context.close()
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self._free_cached_memory()

    def _make_room_for(self, request: ProblemRequest, shortage: Exception) -> None:
        """Forget all problems, this one too, so that it can be tried once more.

        Raises `DeviceError` where it was the only one.
        """
        self.forget(request)
        if not self._contexts:
            raise self._shortage(request, shortage)
        self._forget_contexts(keep=0)

    def _memory_is_short(self) -> bool:
        if free_share() < _FREE_ON_HOST:
            return True
        self._free_cached_memory()
        return self.device.type == "cuda" and self._device_is_short()

    def _device_is_short(self) -> bool:
        free, total = torch.cuda.mem_get_info(self.device)
        return bool(free < _FREE_ON_DEVICE * total)

    def _forget_contexts(self, *, keep: int) -> None:
        while len(self._contexts) > keep:
            self._contexts.pop(next(iter(self._contexts))).close()
        self._free_cached_memory()

    def _free_cached_memory(self) -> None:
        """Leave half of a GPU to the next candidate. What torch keeps for later is given back only
        where it takes more, since the device must wipe it before anything is timed."""
        if self.device.type == "cuda" and self._device_is_short():
            torch.cuda.empty_cache()

    def _try(self, run: EvaluationRun, runner: ModuleRunner, request: EvaluationRequest) -> None:
        self._stage("importing and calling the kernel")
        run.first_calls(runner)
        assert run.runner is not None
        runner = run.runner
        if runner.build is not None and not runner.build.ok:
            run.notes.append("a build failed and the candidate went on without it")
        hidden = run.context.hidden(request.hidden_references)
        for other in hidden:
            run.at_hidden_sizes(other, another=other is not hidden[-1])
        self._stage(f"right in {run.verified.judged} calls")
        if request.is_timed:
            self._stage("timing")
            run.time(runner)
        if request.weights is not None:
            run.with_weights(request.weights)
        run.decide()

    def close(self) -> None:
        self._forget_contexts(keep=0)
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None


def _memory(context: ProblemContext, runner: ModuleRunner | None) -> DeviceMemory:
    if runner is None:
        return DeviceMemory()
    eager = context.baselines.running(BaselineName.EAGER)
    return DeviceMemory(
        candidate_bytes=runner.memory_bytes,
        baseline_bytes=eager.memory_bytes if eager else None,
        judge_bytes=context.judge_bytes(runner),
    )
