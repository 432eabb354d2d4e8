"""What is set up once for a problem and serves all its candidates: reference, memory, baselines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Unpack

import torch

from evaluator.evaluation import ProblemRequest, Status
from evaluator.hardware.devices import cache_bytes, describe
from evaluator.hardware.published import published
from evaluator.ipc.reply import Reply
from evaluator.judge.bounds.ceilings import measure_ceilings
from evaluator.judge.bounds.speed_of_light import bounds
from evaluator.judge.context.baselines import Baselines
from evaluator.judge.context.call_sequence import CallSequence
from evaluator.judge.context.problem_setup import CONTEXT_BYTES, set_up
from evaluator.judge.context.worker_factory import WorkerFactory
from evaluator.judge.inputs.draws import Draw
from evaluator.judge.problem.exact_reference import Exact
from evaluator.judge.problem.reference import flatten_arguments
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers.call import Call
from evaluator.judge.workers.module_runner import CallOptions, ModuleRunner
from evaluator.judge.workers.zygote import Zygote
from evaluator.reason import Reason
from evaluator.settings import Settings


class ProblemContext:
    """One problem set up on one device. Raises `UnusableReferenceError` or `DeviceError`."""

    def __init__(
        self,
        request: ProblemRequest,
        device: torch.device,
        zygote: Zygote,
        *,
        is_timed: bool = True,
    ) -> None:
        """`is_timed`: the eager baseline will be needed."""
        self._request = request
        self._hidden: dict[str, ProblemContext] = {}
        self.device = device
        self.workers = WorkerFactory(request, device, zygote)
        self.rules = self.workers.rules
        # It is there first, so that the candidate's gets its context while the problem is set up.
        idle = self.workers.new(another=True) if is_timed else None
        try:
            self.setup = setup = set_up(request, self.workers)
            self.reference, self.facts, self.work = setup.reference, setup.facts, setup.work
            self.draws, self.memory, self.flush = setup.draws, setup.memory, setup.flush
            # A warm worker in the making would disturb what is measured here.
            self.workers.settle()
            self.bounds = bounds(
                self.work,
                published(describe(str(device)).name),
                measure_ceilings(str(device), self.workers.threads),
                cache_bytes(str(device)),
            )
        except BaseException:
            if idle is not None:
                idle.close()
            raise
        self.baselines = Baselines(setup, idle)
        self.sequence = CallSequence() if self.facts.keeps_state else None
        """The candidate's calls, where the reference keeps a state from call to call."""
        self.exact_seconds = 0.0
        """What the last call of the fp64 reference took."""

    @property
    def settings(self) -> Settings:
        return self.workers.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self.workers.settings = settings

    @contextmanager
    def calling(
        self,
        runner: ModuleRunner,
        draw: Draw,
        *,
        flushes: bool = False,
        **options: Unpack[CallOptions],
    ) -> Iterator[Call]:
        """One call of a module with the inputs of a draw; see `ModuleRunner.call`.

        `flushes`: caches are flushed before, on a GPU once more when the inputs lie there.
        """
        if flushes:
            # What the worker has held before it holds still.
            self.memory.has_free(max(0, self.facts.forward_bytes - (runner.memory_bytes or 0)))
            self.flush.run()
        if self.sequence is not None:
            self.sequence.add(runner, draw)
        laid, flush = self.draws.laid(draw), self.flush.tensor if flushes else None
        with runner.call(laid, random_seed=draw.random_seed, flush=flush, **options) as call:
            yield call

    def expected(self, draw: Draw) -> list[torch.Tensor]:
        for each in self._up_to(draw):
            values = self.draws.values_of(each)
            outputs = self.reference.run(values, each.random_seed)
        return [*outputs, *flatten_arguments(values)] if self.facts.compares_inputs else outputs

    def first_outputs(self, draw: Draw) -> list[torch.Tensor]:
        """What the reference gives where this is the first call of a fresh module."""
        self.reference.restart()
        return self.reference.run(self.draws.values_of(draw), draw.random_seed)

    def _arguments(self, draw: Draw) -> list[Any]:
        # A list of its own: it is emptied on the way.
        return list(self.draws.values_of(draw))

    def _up_to(self, draw: Draw) -> list[Draw]:
        if self.sequence is None:
            return [draw]
        self.reference.restart()
        self.setup.exact.forget()
        return self.sequence.until(draw)

    def exact(self, draw: Draw) -> Exact:
        """The fp64 reference's outputs for one call. Raises `torch.OutOfMemoryError`."""
        if self.facts.is_random:
            # In fp64 the same seed leads to other random numbers.
            return Exact(None, "task_precision")
        begin = time.monotonic()
        for each in self._up_to(draw):
            outputs, source = self.setup.exact.outputs(partial(self._arguments, each))
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.exact_seconds = time.monotonic() - begin
        return Exact(outputs, source)

    def sealed_outputs(
        self, runner: ModuleRunner, reply: Reply, draw: Draw, *, reference: bool = False
    ) -> list[torch.Tensor]:
        """Copies of a call's outputs, out of the worker's reach; raises `Rejection`.

        Where the reference changes its inputs, the inputs as the call left them come after the
        outputs, as in `expected`. `reference`: those of the reference beside it come last.
        """
        outputs = runner.outputs(reply, self.facts.outputs * (2 if reference else 1))
        return [*outputs, *self.draws.lying(draw)] if self.facts.compares_inputs else outputs

    def rejected_as_borrowed(self, runner: ModuleRunner, reply: Reply) -> Rejection | None:
        """Why outputs are refused that are views of the inputs, or of each other, where the
        reference's are not. Of the call whose context lasts."""
        borrowed, allowed = runner.borrowed(reply), self.facts.borrowed
        if borrowed.inputs and not allowed.inputs:
            what = "an output is a view of an input"
        elif borrowed.each_other and not allowed.each_other:
            what = "two outputs share memory"
        elif borrowed.itself and not allowed.itself:
            what = "an output is a view with several elements at one address"
        else:
            return None
        message = f"{what}, which the reference's is not; return a copy"
        return Rejection(Status.INTEGRITY, Reason.BORROWED_OUTPUT, message)

    def judge_bytes(self, runner: ModuleRunner) -> int | None:
        """Most of a GPU's memory that the judge has held while `runner` was judged, with what it
        lends to the workers; None on a CPU."""
        taken = self.memory.most_bytes()
        slots = sum(each.slot_bytes for each in (runner, *self.baselines.runners))
        return None if taken is None else taken + self.draws.arena.size + slots

    def make_room(self) -> None:
        """End the baselines, which are started again when they are needed, and give memory back."""
        self.baselines.close()
        self.setup.give_memory_back()

    def prepare_next(self) -> bool:
        """Have the next candidate's worker begun on a GPU with room for it; whether that is so."""
        needed = CONTEXT_BYTES + self.setup.bytes_to_verify()
        begins = self.device.type == "cuda" and self.memory.has_free(needed)
        if begins:
            self.workers.prepare_next()
        return begins

    def hidden(self, references: tuple[str, ...]) -> list[ProblemContext]:
        """The same problem at sizes that the prompt does not show, set up once."""
        for source in references:
            if source not in self._hidden:
                request = self._request.model_copy(update={"reference": source})
                self._hidden[source] = ProblemContext(
                    request, self.device, self.workers.zygote, is_timed=False
                )
        found = [self._hidden[source] for source in references]
        for context in found:
            context.settings = self.settings
        return found

    def close(self) -> None:
        for context in self._hidden.values():
            context.close()
        self._hidden.clear()
        self.baselines.close()
        self.draws.arena.close()
        self.flush.close()
