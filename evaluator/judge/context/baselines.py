"""The reference in workers of its own, run as users would run it: what candidates are timed
against."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from evaluator.backend_flags import BackendFlags
from evaluator.baseline import BASELINES
from evaluator.errors import DeviceError, InfrastructureError, UnusableReferenceError
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.judge.context.construction import Construction
from evaluator.judge.context.problem_setup import ProblemSetup
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.settings import BaselineName, Precision

TRUSTED_TIMEOUT_S = 300.0
_WARMING_CALLS = 3
_TRIED_CALLS = 5
_FLAGS_MATTER = 0.03
"""PyTorch's default flags count as a baseline where eager's time differs by more than this."""


@contextmanager
def failures_are_ours() -> Iterator[None]:
    """A baseline that fails in a call says nothing of the candidate: raises
    `InfrastructureError`."""
    try:
        yield
    except Rejection as rejection:
        raise InfrastructureError(f"a baseline failed in a call: {rejection.message}") from None


class Baselines:
    def __init__(self, setup: ProblemSetup, idle: ModuleRunner | None) -> None:
        """`idle`: a worker for eager that has run nothing yet."""
        self._setup = setup
        self._idle = idle
        self._runners: dict[tuple[BaselineName, int], ModuleRunner] = {}
        """By name and the number of the candidate's worker: 0 for all but eager's further ones."""
        self.notes: dict[BaselineName, str] = {}
        """Why some can't be had."""
        self._flags_matter: bool | None = None

    @property
    def runners(self) -> list[ModuleRunner]:
        return list(self._runners.values())

    def running(self, name: BaselineName) -> ModuleRunner | None:
        return self._runners.get((name, 0))

    def timed(self, number: int) -> Iterator[tuple[BaselineName, ModuleRunner]]:
        """Those that a candidate is timed against, each warmed up.

        `number`: of its worker, from 0; each has another worker of eager beside it.
        """
        asked = self._setup.workers.settings.baselines
        for name in asked:
            runner = self.eager(number) if name is BaselineName.EAGER else self.get(name)
            if runner is not None:
                yield name, runner
        name = BaselineName.DEFAULT_FLAGS
        if name not in asked and self._default_flags_matter():
            if self.running(name) is None and not self._has_room():
                self.notes[name] = f"baseline {name} is left out: there is no memory for it"
            runner = self.get(name)
            if runner is not None:
                yield name, runner

    def _has_room(self) -> bool:
        eager = self._runners[BaselineName.EAGER, 0]
        worker = (eager.memory_bytes or 0) + eager.slot_bytes
        return self._setup.memory.has_free(worker + self._setup.bytes_to_verify())

    def eager(self, number: int) -> ModuleRunner:
        self.start_eager(number)
        return self._runners[BaselineName.EAGER, number]

    def start_eager(self, first: int, count: int = 1) -> None:
        """Have `count` workers of eager run, with numbers from `first` on, and number 0; the
        others start together."""
        self.get(BaselineName.EAGER)
        running = self.running_eager
        if missing := [number for number in range(first, first + count) if number not in running]:
            started = self._started(BaselineName.EAGER, len(missing))
            for number, other in zip(missing, started, strict=True):
                other.memory_bytes = self._runners[BaselineName.EAGER, 0].memory_bytes
                self._runners[BaselineName.EAGER, number] = other

    def end_further(self) -> None:
        """End the workers of eager after the first, until they are needed again."""
        for key in [key for key in self._runners if key[1]]:
            self._runners.pop(key).close()

    @property
    def running_eager(self) -> dict[int, ModuleRunner]:
        eager = BaselineName.EAGER
        return {number: runner for (name, number), runner in self._runners.items() if name is eager}

    def get(self, name: BaselineName) -> ModuleRunner | None:
        """A baseline in a worker of its own, warmed up; None where it can't be had."""
        if self.running(name) is None and name not in self.notes:
            for runner in self._started(name, 1):
                runner.note_memory()
                self._runners[name, 0] = runner
        return self.running(name)

    def wanted_bytes(self, workers: int) -> int:
        """What `workers` workers of a candidate, one of eager beside each, the other baselines, if
        they do not run yet, and verifying one call take of a GPU's memory."""
        asked = {(name, 0) for name in self._setup.workers.settings.baselines}
        missing = workers - 1 + len(asked - self._runners.keys())
        return (workers + missing) * self._setup.worker_bytes + self._setup.bytes_to_verify()

    def _started(self, name: BaselineName, count: int) -> list[ModuleRunner]:
        setup = self._setup
        setup.give_memory_back()
        with ExitStack() as ends:
            runners = []
            for _ in range(count):
                runners.append(self._new_runner(name))
                ends.callback(runners[-1].close)
            try:
                self._warm_up(name, *runners)
            except Rejection as rejection:
                said = f"{rejection.message} {rejection.detail[-500:]}"
            except DeviceError as error:
                if name is BaselineName.EAGER:
                    raise
                said = str(error)
            else:
                ends.pop_all()
                return runners
        said = f"baseline {name} could not be run: {said}"
        if name is BaselineName.EAGER:
            # Now that the workers that failed are gone.
            fits = setup.memory.has_free(self.wanted_bytes(1))
            raise (InfrastructureError if fits else DeviceError)(said)
        self.notes[name] = said
        return []

    def _new_runner(self, name: BaselineName) -> ModuleRunner:
        setup = self._setup
        if BASELINES[name].compile is not None:
            return setup.workers.new(confine=False)
        runner, self._idle = self._idle or setup.workers.new(), None
        return runner

    def _warm_up(self, name: BaselineName, runner: ModuleRunner, *others: ModuleRunner) -> None:
        """Raises `Rejection`."""
        setup, baseline = self._setup, BASELINES[name]
        setup.workers.load(
            runner,
            setup.reference.source,
            "Model",
            triton=baseline.compile is not None,
            build=no_build,
            baseline=baseline,
            others=others,
        )
        # Its own initial values are as good as any: only its time counts.
        construction = Construction(
            setup, {}, compile_with=baseline.compile, timeout_s=TRUSTED_TIMEOUT_S
        )
        construction.on(runner, *others)
        for each in (runner, *others):
            for _ in range(_WARMING_CALLS):
                draw = setup.draws.plain()
                with each.call(
                    setup.draws.laid(draw),
                    random_seed=draw.random_seed,
                    timeout_s=TRUSTED_TIMEOUT_S,
                ):
                    pass

    def _default_flags_matter(self) -> bool:
        """Whether eager takes another time with the flags that PyTorch starts with."""
        setup, settings = self._setup, self._setup.workers.settings
        if self._flags_matter is None:
            self._flags_matter = (
                setup.device.type == "cuda"
                and setup.workers.rules.tries_default_flags
                and settings.precision is Precision.FP32
                and setup.work.uses_cudnn
                and self._times_differ()
            )
        return self._flags_matter

    def _times_differ(self) -> bool:
        setup = self._setup
        values = setup.draws.values_of(setup.draws.plain())
        least = {True: float("inf"), False: float("inf")}
        try:
            for _ in range(_TRIED_CALLS):
                for allowed in least:
                    setup.reference.flags = BackendFlags(tf32_convolutions=allowed)
                    setup.flush.run()
                    begin = time.perf_counter()
                    setup.reference.expected(values)
                    torch.cuda.synchronize(setup.device)
                    least[allowed] = min(least[allowed], time.perf_counter() - begin)
        finally:
            setup.reference.flags = BackendFlags()
        return max(least.values()) > (1 + _FLAGS_MATTER) * min(least.values())

    def close(self) -> None:
        for runner in (*self.runners, *([self._idle] if self._idle else [])):
            runner.close()
        self._idle = None
        self._runners.clear()


def no_build(request: BuildRequest) -> BuildOutcome:
    raise UnusableReferenceError(f"the reference calls load_inline itself ({request.name})")
