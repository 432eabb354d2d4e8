"""Makes the workers of one problem and has them import sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, replace

import torch

from evaluator.backend_flags import BackendFlags
from evaluator.baseline import BASELINES, Baseline
from evaluator.builder.handover import Build
from evaluator.evaluation import ProblemRequest
from evaluator.hardware.cores import usable_cores
from evaluator.judge.problem.reference import DTYPES
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.judge.workers.process import WorkerLimits, worker_limits
from evaluator.judge.workers.zygote import Zygote
from evaluator.protocol import RULES
from evaluator.settings import BaselineName, Precision
from evaluator.worker.orders import LoadOrder
from evaluator.worker.steps import SourceText
from evaluator.worker.values import dtype_name

_BEGUN_AHEAD = 3
"""Workers that wait on a GPU while another one is timed, only the first with a context: two more of
the same candidate, as a rule, and the next one's. Starting CUDA takes longer than a context."""


class WorkerFactory:
    """Forks workers from the judge's zygote, all with the limits and flags of one problem."""

    def __init__(self, request: ProblemRequest, device: torch.device, zygote: Zygote) -> None:
        self.settings = request.settings
        """Of the request in hand; what a problem is set up for stays the same."""
        self.rules = RULES[request.settings.protocol]
        self.device = device
        self.zygote = zygote
        self.threads = request.settings.threads or usable_cores()

    @property
    def _limits(self) -> WorkerLimits:
        return worker_limits(self.device, self.settings.memory_limit_bytes)

    def new(self, *, confine: bool = True, another: bool = False) -> ModuleRunner:
        """A worker that has run nothing yet.

        `another`: one more will be asked for soon, so a warm worker is made; `settle` waits for
        it. On a GPU one is begun for the next candidate in any case; see `prepare_next`.
        """
        limits = self._limits if confine else worker_limits(self.device, None)
        worker = self.zygote.fork(limits, confine=confine)
        if not confine and self.device.type == "cuda":
            # Other problems may have to be compiled, too: what is imported touches no device.
            self.zygote.compilers.begin(limits)
        if another:
            self.zygote.pool.prepare(limits)
        elif confine and self.device.type == "cuda":
            self.zygote.pool.begin(limits)
        poisons = not self.rules.in_one_process
        return ModuleRunner(worker, self.device, self.settings.call_timeout_s, poisons=poisons)

    def settle(self) -> None:
        """Wait until no warm worker is in the making: it would disturb what is timed."""
        self.zygote.pool.settle()

    def prepare_next(self) -> None:
        """Begin to make a GPU's context for the next worker, and to start those after it.

        No candidate's code runs in them. All of this goes on while others are timed.
        """
        self.zygote.pool.prepare(self._limits)
        self.zygote.pool.begin(self._limits, _BEGUN_AHEAD)

    def load(
        self,
        runner: ModuleRunner,
        source: str,
        class_name: str,
        *,
        triton: bool,
        build: Build,
        baseline: Baseline = BASELINES[BaselineName.EAGER],
        reference: str | None = None,
        others: Sequence[ModuleRunner] = (),
    ) -> None:
        """Import a source in a worker, with the flags of `baseline`; see `ModuleRunner.load`.

        `others`: import it there at the same time. What a worker takes of the device's memory is
        watched where there are none. Raises `Rejection`, and `DeviceError` where a worker has no
        context on a GPU.
        """
        text: SourceText = "none" if self.rules.in_one_process else "lines"
        runners = (runner, *others)
        order = LoadOrder(
            source,
            class_name,
            threads=self.threads,
            dtype=dtype_name(DTYPES[self.settings.precision]),
            flags=astuple(self._flags(baseline)),
            text="file" if triton else text,
            reference=reference,
        )
        for each in runners:
            each.load(order, build)
        for each in runners:
            # They share the processors.
            each.loaded(len(runners) * self.settings.import_timeout_s)
        if not others:
            # The context of a warm worker in the making would count as this worker's.
            self.zygote.pool.settle_context()
            runner.watch_memory()

    def _flags(self, baseline: Baseline) -> BackendFlags:
        tf32 = self.rules.allows_tf32 or self.settings.precision is Precision.TF32
        flags = BackendFlags(tf32, tf32)
        if self.rules.pytorch_flags or baseline.default_flags:
            flags = BackendFlags.of_pytorch()
        return replace(flags, cudnn_benchmark=baseline.cudnn_benchmark)
