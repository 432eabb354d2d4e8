"""The reference in workers of its own, run as users would run it: what candidates are timed
against."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from evaluator.backend_flags import BackendFlags
from evaluator.baseline import BASELINES
from evaluator.build_request import BuildOutcome, BuildRequest
from evaluator.errors import InfrastructureError, UnusableReferenceError
from evaluator.evaluation import BaselineName, Precision
from evaluator.judge.refusal import Refusal
from evaluator.judge.side import Side

if TYPE_CHECKING:
    from evaluator.judge.bench import Bench

TRUSTED_TIMEOUT_S = 300.0
_TRIED_CALLS = 5
_FLAGS_MATTER = 0.03
"""PyTorch's default flags count as a baseline where eager's time differs by more than this."""


@contextmanager
def failures_are_ours() -> Iterator[None]:
    """A baseline that fails in a call says nothing of the candidate: raises
    `InfrastructureError`."""
    try:
        yield
    except Refusal as refusal:
        raise InfrastructureError(f"a baseline failed in a call: {refusal.message}") from None


class Baselines:
    """Those of one problem on one device, started when they are first needed."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._sides: dict[BaselineName, Side] = {}
        self._others: list[Side] = []
        """Further workers of eager."""
        self.notes: dict[BaselineName, str] = {}
        """Why some can't be had."""
        self._flags_matter: bool | None = None

    @property
    def sides(self) -> list[Side]:
        """Those that run."""
        return [*self._sides.values(), *self._others]

    @property
    def missing(self) -> int:
        """How many of those that are asked for do not run yet."""
        return len(set(self._bench.settings.baselines) - self._sides.keys())

    def running(self, name: BaselineName) -> Side | None:
        """The worker of a baseline that has been started."""
        return self._sides.get(name)

    def timed(self, number: int) -> Iterator[tuple[BaselineName, Side]]:
        """Those that a candidate is timed against, each warmed up.

        `number`: of its worker, from 0; each has another worker of eager beside it.
        """
        asked = self._bench.settings.baselines
        for name in asked:
            side = self.eager(number) if name is BaselineName.EAGER else self.get(name)
            if side is not None:
                yield name, side
        name = BaselineName.DEFAULT_FLAGS
        if name not in asked and self._default_flags_matter():
            side = self.get(name)
            if side is not None:
                yield name, side

    def eager(self, number: int) -> Side | None:
        """The worker of eager that a candidate's worker is timed beside; None where there is no
        other one."""
        if number == 0:
            return self.get(BaselineName.EAGER)
        while len(self._others) < number:
            side = self._started(BaselineName.EAGER)
            if side is None:
                return None
            self._others.append(side)
        return self._others[number - 1]

    def get(self, name: BaselineName) -> Side | None:
        """A baseline in a worker of its own, warmed up; None where it can't be had."""
        if name in self.notes:
            return None
        if name not in self._sides:
            side = self._started(name)
            if side is None:
                return None
            self._sides[name] = side
        return self._sides[name]

    def _started(self, name: BaselineName) -> Side | None:
        bench, baseline = self._bench, BASELINES[name]
        compiled = baseline.compile is not None
        bench.give_memory_back()
        if compiled:
            side = bench.new_side(confine=False)
        else:
            side, bench.idle = bench.idle or bench.new_side(), None
        try:
            source = bench.reference.source
            bench.load(side, source, "Model", triton=compiled, build=no_build, baseline=baseline)
            # Its own initial values are as good as any: only its time counts.
            bench.construct(side, {}, compile_with=baseline.compile, timeout_s=TRUSTED_TIMEOUT_S)
            for _ in range(3):
                draw = bench.draws.plain()
                with bench.calling(side, draw, timeout_s=TRUSTED_TIMEOUT_S):
                    pass
            side.note_memory()
        except Refusal as refusal:
            side.close()
            said = f"baseline {name} could not be run: {refusal.message} {refusal.detail[-500:]}"
            if name is BaselineName.EAGER:
                raise InfrastructureError(said) from None
            self.notes[name] = said
            return None
        return side

    def _default_flags_matter(self) -> bool:
        """Whether eager takes another time with the flags that PyTorch starts with."""
        bench, settings = self._bench, self._bench.settings
        if self._flags_matter is None:
            self._flags_matter = (
                bench.device.type == "cuda"
                and settings.protocol == "refinery"
                and settings.precision is Precision.FP32
                and bench.work.uses_cudnn
                and self._times_differ()
            )
        return self._flags_matter

    def _times_differ(self) -> bool:
        """Whether TF32 in convolutions shows in the time of the judge's own reference."""
        bench = self._bench
        values = bench.draws.values_of(bench.draws.plain())
        least = {True: float("inf"), False: float("inf")}
        try:
            for _ in range(_TRIED_CALLS):
                for allowed in least:
                    bench.reference.flags = BackendFlags(tf32_convolutions=allowed)
                    bench.flush_caches()
                    begin = time.perf_counter()
                    bench.reference.expected(values)
                    torch.cuda.synchronize(bench.device)
                    least[allowed] = min(least[allowed], time.perf_counter() - begin)
        finally:
            bench.reference.flags = BackendFlags()
        return max(least.values()) > (1 + _FLAGS_MATTER) * min(least.values())

    def close(self) -> None:
        """End them all; they are started again when they are needed."""
        for side in self.sides:
            side.close()
        self._sides.clear()
        self._others.clear()


def no_build(request: BuildRequest) -> BuildOutcome:
    """A reference compiles nothing of its own."""
    raise UnusableReferenceError(f"the reference calls load_inline itself ({request.name})")
