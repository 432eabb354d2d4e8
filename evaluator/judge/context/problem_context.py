"""What is set up once for a problem and serves all its candidates: reference, memory, baselines."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, replace
from functools import cache, partial
from typing import Any, Unpack

import torch

from evaluator.backend_flags import BackendFlags
from evaluator.baseline import BASELINES, Baseline
from evaluator.builder.handover import Build
from evaluator.errors import UnusableReferenceError
from evaluator.evaluation import ProblemRequest
from evaluator.hardware.cores import usable_cores
from evaluator.hardware.cuda_memory import reset_persisting_l2
from evaluator.hardware.devices import cache_bytes, describe, peaks
from evaluator.ipc.reply import OutputLayout
from evaluator.judge.blockwise import all_close, same
from evaluator.judge.bounds.ceilings import measure_ceilings
from evaluator.judge.bounds.speed_of_light import bounds
from evaluator.judge.bounds.work import count_work
from evaluator.judge.context.baselines import Baselines
from evaluator.judge.context.call_sequence import CallSequence
from evaluator.judge.context.judge_memory import JudgeMemory
from evaluator.judge.inputs.draws import Draw, Draws
from evaluator.judge.inputs.input_fitness import is_fit
from evaluator.judge.inputs.input_kinds import InputKinds, kinds_for
from evaluator.judge.inputs.placement import bytes_needed
from evaluator.judge.problem.constant_outputs import constant_outputs
from evaluator.judge.problem.exact_reference import Exact, ExactReference
from evaluator.judge.problem.out_of_memory import is_out_of_memory
from evaluator.judge.problem.reference import Reference, flatten_arguments
from evaluator.judge.problem.variation import Kind, fresh_seed
from evaluator.judge.workers.call import Call
from evaluator.judge.workers.output_memory import any_repeats
from evaluator.judge.workers.side import CallOptions, Side
from evaluator.judge.workers.worker_limits import worker_limits
from evaluator.judge.workers.zygote import Zygote
from evaluator.settings import BaselineName, Precision
from evaluator.worker.orders import LoadOrder
from evaluator.worker.steps import SourceText
from evaluator.worker.values import dtype_name

CONTEXT_BYTES = 2**30
"""That another worker's context takes of a GPU's memory, at most."""
_BEGUN_AHEAD = 3
"""Workers that wait on a GPU while another one is timed, only the first with a context: two more of
the same candidate, as a rule, and the next one's. Starting CUDA takes longer than a context."""
_SLACK = 2**20
_RUNS = 4


def _flush(device: torch.device) -> torch.Tensor:
    """What is written over to push everything else out of the caches."""
    size = max(2 * cache_bytes(str(device)), 16 * 2**20)
    return torch.zeros(size, dtype=torch.uint8, device=device)


@cache
def _host_flush() -> torch.Tensor:
    """One for all problems of this process: fresh pages for the caches of a server take 0.3 s."""
    return _flush(torch.device("cpu"))


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
        self.settings = request.settings
        self.device = device
        self._zygote = zygote
        self.idle: Side | None = None
        """The worker of the eager baseline, as long as it has nothing to do. It is there first, so
        that the candidate's gets its context while the problem is set up."""
        if is_timed:
            self.idle = self.new_side(another=True)
        try:
            self._set_up(request)
        except BaseException:
            self._end_idle()
            raise

    def _set_up(self, request: ProblemRequest) -> None:
        device = self.device
        self.reference = Reference(
            request.reference,
            device,
            request.settings.precision,
            as_pytorch=request.settings.protocol == "kernelbench",
            allow_tf32=request.settings.protocol == "verified",
        )
        self._exact = ExactReference(self.reference)
        self.exact_seconds = 0.0
        """What the last call of the fp64 reference took."""
        self.verifying_bytes = 0
        """Most of a GPU's memory that the judge has taken while it verified one call."""
        self.forward_bytes = 0
        """Most of a GPU's memory that the reference takes during a call, outputs included."""
        self.memory = JudgeMemory(device)
        self.is_random = False
        """Whether the reference draws random numbers, as dropout does in training."""
        self.sequence: CallSequence | None = None
        """The candidate's calls, where the reference keeps a state from call to call."""
        self._reproducible = True
        """Whether the same seed gives the same inputs again."""
        values = self._examine(fresh_seed())
        self.threads = request.settings.threads or usable_cores()
        self.output_bytes = sum(t.numel() * t.element_size() + 512 for t in self.outputs) + _SLACK
        # KernelBench runs both sides in one process, on the same inputs and with equal seeds.
        self.runs_reference_beside = (
            request.settings.protocol == "kernelbench"
            and self.sequence is None
            and not self.reference.changes_inputs
        )
        if self.runs_reference_beside:
            self.output_bytes *= 2
        self.flush = _host_flush() if device.type == "cpu" else _flush(device)
        self.work = count_work(self.reference.model, values, request.settings.precision)
        size = bytes_needed(values)
        del values
        kinds = InputKinds(kinds_for(request.settings, self.work))
        for kind in set(kinds.all) - {Kind.PLAIN}:
            if self.sequence is not None or not self._takes(kind):
                kinds.drop(kind)
        self.give_memory_back()
        self.draws = Draws(
            self.reference,
            size,
            kinds,
            reproducible=self._reproducible,
            repeats=request.settings.protocol == "refinery",
            is_random=self.is_random,
            # What KernelBench allows is noted as a finding.
            writable=self.reference.changes_inputs or request.settings.protocol == "kernelbench",
            # KernelBench's inputs lie where those of the trial before lay, as a rule.
            moves=request.settings.protocol != "kernelbench",
        )
        # A spare may be in the making, and what the device reaches is measured here at times.
        self.settle()
        self.bounds = bounds(
            self.work,
            peaks(describe(str(device)).name),
            measure_ceilings(str(device), self.threads),
            cache_bytes(str(device)),
        )
        self.persisting_l2_reset: bool | None = None
        """Whether the last flush could reset them; None on a CPU and before the first."""
        self.baselines = Baselines(self)

    @property
    def compares_inputs(self) -> bool:
        """Whether the inputs, as a call leaves them, count as outputs; not with KernelBench."""
        return self.reference.changes_inputs and self.settings.protocol != "kernelbench"

    def _examine(self, seed: int) -> list[Any]:
        """Run the reference twice on the same inputs, which are returned: it must repeat itself."""
        values = self.reference.fresh_inputs(seed)
        self._reproducible = _all_same(values, self.reference.fresh_inputs(seed))
        before = None if self._reproducible else [t.clone() for t in flatten_arguments(values)]
        outputs, self.forward_bytes = self._measured_run(values)
        own = [tensor.untyped_storage().data_ptr() for tensor in outputs]
        lent = {tensor.untyped_storage().data_ptr() for tensor in flatten_arguments(values)}
        self.returns_inputs = not lent.isdisjoint(own)
        self.returns_overlaps = len(set(own)) < len(own)
        self.returns_repeats = any_repeats(
            [OutputLayout("uint8", tuple(t.shape), tuple(t.stride()), 0) for t in outputs]
        )
        self.outputs = [torch.empty_like(tensor, device="meta") for tensor in outputs]
        """Without values: shapes, strides and dtypes."""
        self.notes = constant_outputs(
            outputs, lambda: self._run(self.reference.fresh_inputs(fresh_seed()))
        )
        if before is None:
            again = self.reference.fresh_inputs(seed)
            self.reference.changes_inputs = not _all_same(values, again)
            values = again
        else:
            self.reference.changes_inputs = not _all_same(values, before)
        del before
        if self.reference.changes_inputs:
            return values
        torch.manual_seed(fresh_seed())
        differs = self._differs(outputs, values)
        del outputs
        seed = fresh_seed()
        if self.reference.carries_buffers(lambda: self._run(values, seed)):
            self._explore_state(values)
        elif differs:
            self.is_random = all_close(*(self._run(values, seed) for _ in range(2)))
            if not self.is_random:
                self._explore_state(values)
        return values

    def _explore_state(self, values: list[Any]) -> None:
        """Whether the same calls from a fresh construction on give the same outputs."""
        seed, other = fresh_seed(), fresh_seed()
        self.reference.keep_state()

        def restarted(seed: int) -> list[torch.Tensor]:
            self.reference.restart()
            return self._run(values, seed)

        if not all_close(restarted(seed), restarted(seed)):
            raise UnusableReferenceError(
                "the reference gives other outputs for the same inputs and the same random seed, "
                "also when it is constructed anew: it draws from a generator that "
                "torch.manual_seed does not seed"
            )
        self.sequence = CallSequence()
        self.is_random = not all_close(restarted(seed), restarted(other))

    def _differs(self, outputs: list[torch.Tensor], values: list[Any]) -> bool:
        """Whether further runs give other outputs. One that is close, not equal, may be luck."""
        for _ in range(_RUNS):
            others = self._run(values)
            if not all_close(outputs, others):
                return True
            if all(map(same, outputs, others)):
                return False
        return False

    def _measured_run(self, values: list[Any]) -> tuple[list[torch.Tensor], int]:
        """Outputs, and the most bytes of a GPU's memory that the call took."""
        with self.memory.measured() as taken:
            outputs = self._run(values)
        return outputs, sum(taken)

    def _run(self, values: list[Any], random_seed: int | None = None) -> list[torch.Tensor]:
        if random_seed is not None:
            torch.manual_seed(random_seed)
        try:
            return self.reference.expected(values)
        except Exception as error:
            if is_out_of_memory(error):
                raise torch.OutOfMemoryError(str(error)) from None
            raise UnusableReferenceError(f"the reference's forward raised {error!r}") from error

    def _takes(self, kind: Kind) -> bool:
        """Whether inputs of this kind are fit to judge by; see `is_fit`."""
        return is_fit(
            self.reference,
            kind,
            lambda seed: self._exact.outputs(partial(self.reference.varied_inputs, seed))[0],
            self.settings,
            self.work.accumulation,
            is_random=self.is_random,
        )

    def calling(
        self,
        side: Side,
        draw: Draw,
        *,
        flushes: bool = False,
        **options: Unpack[CallOptions],
    ) -> AbstractContextManager[Call]:
        """One call of a side with the inputs of a draw; see `Side.call`.

        `flushes`: caches are flushed before, on a GPU once more when the inputs lie there.
        """
        if flushes:
            # What the worker has held before it holds still.
            self.memory.has_free(max(0, self.forward_bytes - (side.memory_bytes or 0)))
            self.flush_caches()
        if self.sequence is not None:
            self.sequence.add(side, draw)
        return side.call(
            self.draws.laid(draw),
            random_seed=draw.random_seed,
            flush=self.flush if flushes else None,
            **options,
        )

    def expected(self, draw: Draw) -> list[torch.Tensor]:
        """The reference's outputs for one call, in the task's precision."""
        for each in self._up_to(draw):
            values = self.draws.values_of(each)
            outputs = self._run(values, each.random_seed)
        return [*outputs, *flatten_arguments(values)] if self.compares_inputs else outputs

    def first_outputs(self, draw: Draw) -> list[torch.Tensor]:
        """What the reference gives where this is the first call of a fresh module."""
        self.reference.restart()
        return self._run(self.draws.values_of(draw), draw.random_seed)

    def _arguments(self, draw: Draw) -> list[Any]:
        return list(self.draws.values_of(draw))

    def _up_to(self, draw: Draw) -> list[Draw]:
        """The calls that lead to this one's outputs; a reference with a state begins anew."""
        if self.sequence is None:
            return [draw]
        self.reference.restart()
        self._exact.forget()
        return self.sequence.until(draw)

    def exact(self, draw: Draw) -> Exact:
        """The fp64 reference's outputs for one call. Raises `torch.OutOfMemoryError`."""
        if self.is_random:
            # In fp64 the same seed leads to other random numbers.
            return Exact(None, "task_precision")
        begin = time.monotonic()
        for each in self._up_to(draw):
            outputs, source = self._exact.outputs(partial(self._arguments, each))
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.exact_seconds = time.monotonic() - begin
        return Exact(outputs, source)

    @contextmanager
    def measured_verification(self) -> Iterator[None]:
        """Note how much of a GPU's memory the judge takes meanwhile, beyond what it has now."""
        with self.memory.measured() as taken:
            yield
        self.verifying_bytes = max(self.verifying_bytes, *taken, 0)

    def judge_bytes(self, side: Side) -> int | None:
        """Most of a GPU's memory that the judge has held while `side` was judged, with what it
        lends to the workers; None on a CPU."""
        taken = self.memory.most_bytes()
        slots = sum(each.slot_bytes for each in (side, *self.baselines.sides))
        return None if taken is None else taken + self.draws.arena.size + slots

    def wanted_bytes(self, workers: int) -> int:
        """What so many workers of a candidate, one of eager beside each, the other baselines, as
        far as they do not run yet, and verifying one call take of a GPU's memory."""
        missing = self.baselines.missing + len(self.baselines.missing_eager(1, workers - 1))
        return (workers + missing) * self.worker_bytes + self.bytes_to_verify()

    @property
    def worker_bytes(self) -> int:
        """What a worker that runs the reference takes of a GPU's memory, at most."""
        module = self.reference.weight_bytes + self.forward_bytes
        return int(module + self.output_bytes + CONTEXT_BYTES)

    def bytes_to_verify(self) -> int:
        """What verifying one call takes of it, with the whole reference in fp64."""
        call = 3 * (self.draws.arena.size + self.forward_bytes) + 2 * self.reference.weight_bytes
        return int(max(self.verifying_bytes, call) + 2 * self.output_bytes)

    def _end_idle(self) -> None:
        side, self.idle = self.idle, None
        if side is not None:
            side.close()

    def make_room(self) -> None:
        """End the baselines, which are started again when they are needed, and give memory back."""
        self.baselines.close()
        self._end_idle()
        self.give_memory_back()

    def give_memory_back(self) -> None:
        """Give back the memory that is kept for the judge's next tensors."""
        self._exact.forget()
        self.memory.give_back()

    def flush_caches(self) -> None:
        """Push everything else out of the caches; waits until that is done on a GPU.

        A kernel may have marked lines of a GPU's L2 cache as persisting: they would outlive this.
        """
        self.memory.settle()
        if self.device.type == "cuda":
            self.persisting_l2_reset = reset_persisting_l2(self.device.index or 0)
        self.flush.add_(1)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def new_side(self, *, confine: bool = True, another: bool = False) -> Side:
        """A worker for this context that has run nothing yet.

        `another`: one more will be asked for soon, so that a spare is made; `settle` waits for it.
        On a GPU one is begun for the next candidate in any case; see `prepare_next`.
        """
        limits = worker_limits(self.device, self.settings.memory_limit_bytes if confine else None)
        worker = self._zygote.fork(limits, confine=confine)
        if another:
            self._zygote.spares.prepare(limits)
        elif confine and self.device.type == "cuda":
            self._zygote.spares.begin(limits)
        poisons = self.settings.protocol != "kernelbench"
        return Side(worker, self.device, self.settings.call_timeout_s, poisons=poisons)

    def settle(self) -> None:
        """Wait until no spare worker is in the making: it would disturb what is timed."""
        self._zygote.spares.settle()

    def prepare_next(self) -> bool:
        """Begin to make a GPU's context for the next worker, and to start those after it; whether
        that is done.

        No candidate's code runs in them. All of this goes on while others are timed.
        """
        needed = CONTEXT_BYTES + self.bytes_to_verify()
        if self.device.type != "cuda" or not self.memory.has_free(needed):
            return False
        limits = worker_limits(self.device, self.settings.memory_limit_bytes)
        self._zygote.spares.prepare(limits)
        self._zygote.spares.begin(limits, _BEGUN_AHEAD)
        return True

    def _flags(self, baseline: Baseline) -> BackendFlags:
        """For a worker; under KernelBench's protocol those that PyTorch starts with."""
        tf32 = self.settings.protocol == "verified" or self.settings.precision is Precision.TF32
        flags = BackendFlags(tf32, tf32)
        if self.settings.protocol == "kernelbench" or baseline.default_flags:
            flags = BackendFlags.of_pytorch()
        return replace(flags, cudnn_benchmark=baseline.cudnn_benchmark)

    def load(
        self,
        side: Side,
        source: str,
        class_name: str,
        *,
        triton: bool,
        build: Build,
        baseline: Baseline = BASELINES[BaselineName.EAGER],
        reference: str | None = None,
        others: Sequence[Side] = (),
    ) -> None:
        """Import a source on a side, with the flags of `baseline`; see `Side.load`.

        `others`: import it there at the same time. What a side takes of the device's memory is
        watched where there are none. Raises `Refusal`, and `DeviceError` where a worker has no
        context on a GPU.
        """
        text: SourceText = "none" if self.settings.protocol == "kernelbench" else "lines"
        sides = (side, *others)
        order = LoadOrder(
            source,
            class_name,
            threads=self.threads,
            dtype=dtype_name(self.reference.dtype),
            flags=astuple(self._flags(baseline)),
            text="file" if triton else text,
            reference=reference,
            configurations=self.reference.problem.configurations,
        )
        for each in sides:
            each.load(order, build)
        for each in sides:
            # They share the processors.
            each.loaded(len(sides) * self.settings.import_timeout_s)
        if not others:
            # The context of a spare in the making would count as this worker's.
            self._zygote.spares.settle_context()
            side.watch_memory()

    def hidden(self, references: tuple[str, ...]) -> list[ProblemContext]:
        """The same problem at sizes that only the judge knows, set up once."""
        for source in references:
            if source not in self._hidden:
                request = self._request.model_copy(update={"reference": source})
                self._hidden[source] = ProblemContext(
                    request, self.device, self._zygote, is_timed=False
                )
        found = [self._hidden[source] for source in references]
        for context in found:
            context.settings = self.settings
        return found

    def close(self) -> None:
        """End the baselines and give the memory back."""
        for context in self._hidden.values():
            context.close()
        self._hidden.clear()
        self.baselines.close()
        self._end_idle()
        self.draws.arena.close()
        with contextlib.suppress(AttributeError):
            del self.flush


def _all_same(values: list[Any], others: list[Any]) -> bool:
    pairs = zip(flatten_arguments(values), flatten_arguments(others), strict=True)
    return all(same(one, other) for one, other in pairs)
