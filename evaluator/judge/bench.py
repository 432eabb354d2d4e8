"""What is set up once for a problem and serves all its candidates: reference, memory, baselines."""

from __future__ import annotations

import contextlib
import itertools
import secrets
from dataclasses import dataclass
from typing import Any

import torch

from evaluator.build.handover import Build
from evaluator.build_request import BuildOutcome, BuildRequest
from evaluator.cores import usable_cores
from evaluator.cuda_memory import reset_persisting_l2
from evaluator.devices import cache_bytes, describe, peaks
from evaluator.errors import DeviceError, InfrastructureError, UnusableReferenceError
from evaluator.evaluation import BaselineName, Precision, ProblemRequest, Settings
from evaluator.judge.arena import Arena, make_arena
from evaluator.judge.laid import Laid, lay
from evaluator.judge.placement import MARGINS, Placement, bytes_needed
from evaluator.judge.reference import WEIGHT_SEED, Reference, flatten_arguments
from evaluator.judge.refusal import Refusal
from evaluator.judge.side import Side
from evaluator.judge.speed_of_light import bounds, count_work, measure_ceilings
from evaluator.judge.variation import fresh_seed, nearly
from evaluator.judge.worker_limits import worker_limits
from evaluator.judge.zygote import Zygote

_SLACK = 2**20
_SHIFTS = 128
_SHIFT_BYTES = 512
_NEAR_ONE_IN = 8
_TRUSTED_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Draw:
    """Fresh inputs of one call: the seed, the values, and where they lie in the input arena."""

    seed: int
    values: list[Any]
    order: Laid


class Bench:
    """One problem set up on one device. Raises `UnusableReferenceError` or `DeviceError`."""

    def __init__(self, request: ProblemRequest, device: torch.device, zygote: Zygote) -> None:
        self.key = bench_key(request)
        self._request = request
        self._hidden: dict[str, Bench] = {}
        self._seed: int | None = None
        self._start = _SHIFT_BYTES
        # By turns, so that the first three calls of any candidate meet all of them.
        self._margins = itertools.cycle(MARGINS)
        self.settings = request.settings
        self.device = device
        self._zygote = zygote
        try:
            self.reference = Reference(request.reference, device, request.settings.precision)
            values = self.reference.fresh_inputs(fresh_seed())
            self.outputs = self._examine(values)
        except torch.OutOfMemoryError as error:
            raise DeviceError(f"the reference does not fit {device}: {error}") from None
        self.threads = request.settings.threads or usable_cores()
        self.output_bytes = sum(t.numel() * t.element_size() + 512 for t in self.outputs) + _SLACK
        needed = bytes_needed(values) + (1 + _SHIFTS) * _SHIFT_BYTES
        self.inputs = make_arena(
            device, needed, read_only_for_others=not self.reference.changes_inputs
        )
        state = list(self.reference.seeded.values())
        arguments = self.reference.initial_arguments
        self._weights_bytes = bytes_needed(state) + bytes_needed(arguments) + _SLACK
        self.flush = torch.zeros(
            max(2 * cache_bytes(str(device)), 16 * 2**20), dtype=torch.uint8, device=device
        )
        self.work = count_work(self.reference.model, values, request.settings.precision)
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
        self.baselines: dict[BaselineName, Side] = {}
        self.baseline_notes: dict[BaselineName, str] = {}

    def _examine(self, values: list[Any]) -> list[torch.Tensor]:
        """Run the reference twice on the same values: it must repeat itself."""
        before = [tensor.clone() for tensor in flatten_arguments(values)]
        outputs = self._run(values)
        own = [tensor.untyped_storage().data_ptr() for tensor in outputs]
        lent = {tensor.untyped_storage().data_ptr() for tensor in flatten_arguments(values)}
        self.returns_inputs = not lent.isdisjoint(own)
        self.returns_overlaps = len(set(own)) < len(own)
        first = [tensor.clone() for tensor in outputs]
        after = flatten_arguments(values)
        self.reference.changes_inputs = any(
            not torch.equal(a.nan_to_num(), b.nan_to_num())
            for a, b in zip(before, after, strict=True)
        )
        if self.reference.changes_inputs:
            return first
        torch.manual_seed(fresh_seed())
        second = self._run(values)
        for a, b in zip(first, second, strict=True):
            if a.is_floating_point() and not torch.allclose(
                a.double(), b.double(), rtol=1e-2, atol=1e-3, equal_nan=True
            ):
                raise UnusableReferenceError(
                    "the reference gives other outputs for the same inputs (dropout or another "
                    "random operator): such problems are not judged"
                )
        return first

    def _run(self, values: list[Any]) -> list[torch.Tensor]:
        try:
            return self.reference.expected(values)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            raise UnusableReferenceError(f"the reference's forward raised {error!r}") from error

    def draw(self, *, near: bool = False) -> Draw:
        """Fresh inputs from a secret seed, at the last address or at another one in the arena.

        `near`: those of the last draw but for an element or two; that happens at times anyway.
        """
        near = near or secrets.randbelow(_NEAR_ONE_IN) == 0
        self._seed = nearly(self._seed) if near and self._seed is not None else fresh_seed()
        if secrets.randbelow(2):
            self._start = (1 + secrets.randbelow(_SHIFTS)) * _SHIFT_BYTES
        values = self._values(self._seed)
        placement = Placement(self.inputs.bytes, self._start, next(self._margins))
        return Draw(self._seed, values, lay(placement, values))

    def _values(self, seed: int) -> list[Any]:
        """KernelBench's protocol knows only what the recipe gives."""
        if self.settings.protocol == "kernelbench":
            return self.reference.fresh_inputs(seed)
        return self.reference.varied_inputs(seed)

    def lay_again(self, draw: Draw) -> Laid:
        """The same inputs once more, for a module that changes them."""
        return lay(Placement(self.inputs.bytes, _SHIFT_BYTES), self._values(draw.seed))

    def flush_caches(self) -> None:
        """Push everything else out of the caches; waits until that is done on a GPU.

        A kernel may have marked lines of a GPU's L2 cache as persisting: they would outlive this.
        """
        if self.device.type == "cuda":
            self.persisting_l2_reset = reset_persisting_l2(self.device.index or 0)
        self.flush.add_(1)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def new_side(self, *, confine: bool = True, another: bool = False) -> Side:
        """A worker for this bench that has run nothing yet.

        `another`: one more will be asked for soon, so that a spare is made; `settle` waits for it.
        On a GPU one is begun for the next candidate in any case, whose context comes later.
        """
        limit = self.settings.memory_limit_bytes if confine else None
        limits = worker_limits(self.device, limit)
        worker = self._zygote.fork(limits, confine=confine)
        if another:
            self._zygote.prepare(limits)
        elif confine and self.device.type == "cuda":
            self._zygote.begin(limits)
        return Side(worker, self.device, self.settings.call_timeout_s)

    def settle(self) -> None:
        """Wait until no spare worker is in the making: it would disturb what is timed."""
        self._zygote.settle()

    def tf32(self) -> bool | None:
        """The flag for the worker; None leaves PyTorch's default, as KernelBench does."""
        if self.settings.protocol == "kernelbench":
            return None
        return self.settings.precision is Precision.TF32

    def load(self, side: Side, source: str, class_name: str, *, triton: bool, build: Build) -> None:
        """Import a source on a side."""
        side.load(
            source,
            class_name,
            threads=self.threads,
            dtype=self.reference.dtype,
            tf32=self.tf32(),
            triton=triton,
            build=build,
            import_timeout_s=self.settings.import_timeout_s,
            configurations=self.reference.problem.configurations,
        )

    def construct(
        self,
        side: Side,
        state: dict[str, torch.Tensor],
        *,
        compiled: bool = False,
        inputs: Arena | None = None,
        timeout_s: float | None = None,
    ) -> str:
        """Construct a side's module with these weights; how they fitted."""
        weights = make_arena(torch.device("cpu"), self._weights_bytes, read_only_for_others=True)
        try:
            placement = Placement(weights.bytes)
            arguments = [placement.place(value) for value in self.reference.initial_arguments]
            tensors = [{"name": n} | placement.place(t.cpu()) for n, t in state.items()]
            return side.construct(
                seed=WEIGHT_SEED,
                arguments=arguments,
                tensors=tensors,
                weights=weights,
                inputs=inputs or self.inputs,
                inputs_writable=inputs is not None or self.reference.changes_inputs,
                output_bytes=self.output_bytes,
                compiled=compiled,
                timeout_s=timeout_s or self.settings.import_timeout_s,
            )
        finally:
            weights.close()

    def baseline(self, name: BaselineName) -> Side | None:
        """The reference itself in a worker of its own, warmed up; None where it can't be had."""
        if name in self.baseline_notes:
            return None
        side = self.baselines.get(name)
        if side is not None:
            return side
        compiled = name is BaselineName.COMPILE
        side = self.new_side(confine=not compiled)
        try:
            self.load(side, self.reference.source, "Model", triton=compiled, build=no_build)
            self.construct(
                side, self.reference.seeded, compiled=compiled, timeout_s=_TRUSTED_TIMEOUT_S
            )
            for _ in range(3):
                draw = self.draw()
                with side.call(draw.order, timeout_s=_TRUSTED_TIMEOUT_S):
                    pass
        except Refusal as refusal:
            side.close()
            said = f"baseline {name} could not be run: {refusal.message} {refusal.detail[-500:]}"
            if name is BaselineName.EAGER:
                raise InfrastructureError(said) from None
            self.baseline_notes[name] = said
            return None
        self.baselines[name] = side
        return side

    def hidden(self, references: tuple[str, ...]) -> list[Bench]:
        """The same problem at sizes that only the judge knows, set up once."""
        for source in references:
            if source not in self._hidden:
                request = self._request.model_copy(update={"reference": source})
                self._hidden[source] = Bench(request, self.device, self._zygote)
        found = [self._hidden[source] for source in references]
        for bench in found:
            bench.settings = self.settings
        return found

    def close(self) -> None:
        """End the baselines and give the memory back."""
        for bench in self._hidden.values():
            bench.close()
        self._hidden.clear()
        for side in self.baselines.values():
            side.close()
        self.baselines.clear()
        self.inputs.close()
        with contextlib.suppress(AttributeError):
            del self.flush


def no_build(request: BuildRequest) -> BuildOutcome:
    """A reference compiles nothing of its own."""
    raise UnusableReferenceError(f"the reference calls load_inline itself ({request.name})")


def bench_key(request: ProblemRequest) -> tuple[object, ...]:
    """What must agree for two requests to share a bench."""
    settings: Settings = request.settings
    return (
        request.reference,
        settings.device,
        settings.precision,
        settings.protocol,
        settings.threads,
        settings.memory_limit_bytes,
    )
