"""A module with certain weights, to be constructed in workers of a problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from evaluator.baseline import CompileOptions
from evaluator.judge.context.problem_setup import ProblemSetup
from evaluator.judge.inputs.arena import Arena, make_arena
from evaluator.judge.inputs.placement import Placement, bytes_needed
from evaluator.judge.problem.reference import WEIGHT_SEED
from evaluator.judge.workers.module_runner import ModuleRunner
from evaluator.worker.orders import ConstructOrder
from evaluator.worker.steps import Earlier
from evaluator.worker.weights import Fit

_SLACK_BYTES = 2**20


@dataclass(frozen=True)
class Construction:
    setup: ProblemSetup
    state: Mapping[str, torch.Tensor]
    """Weights by name; none: as constructed."""
    compile_with: CompileOptions | None = None
    inputs: Arena | None = None
    """Where its inputs will lie; None: with those of all others."""
    timeout_s: float | None = None
    seed: int | None = None
    """Of a module that is judged as constructed, with random constants."""
    earlier: Earlier = ""

    def on(self, runner: ModuleRunner, *others: ModuleRunner) -> Fit:
        """Construct it in these workers at the same time; how the weights fitted in the first.

        Each is constructed so again by `ModuleRunner.construct_on`. Raises `Rejection`.
        """
        setup, state, runners = self.setup, self.state, (runner, *others)
        size = bytes_needed(state) + bytes_needed(setup.reference.initial_arguments) + _SLACK_BYTES
        weights = make_arena(torch.device("cpu"), size, read_only_for_others=True)
        try:
            if setup.device.type == "cuda":
                # All cores fault its pages in; a copy from a device does that on one core.
                weights.bytes.zero_()
            placement = Placement(weights.bytes)
            arguments = [placement.place(value) for value in setup.reference.initial_arguments]
            order = ConstructOrder(
                WEIGHT_SEED if self.seed is None else self.seed,
                arguments,
                setup.facts.output_bytes,
                {name: placement.tensor(tensor) for name, tensor in state.items()},
                [(list(form.shape), list(form.stride())) for form in setup.facts.outputs],
                inputs_writable=self.inputs is not None or setup.draws.writable,
                compile_with=self.compile_with,
                repeated_values=not setup.workers.rules.in_one_process,
                random_constants=self.seed is not None,
                earlier=self.earlier,
            )
            for each in runners:
                each.construct_on = self.on
                each.construct(order, weights, self.inputs or setup.draws.arena)
            timeout_s = self.timeout_s or setup.workers.settings.import_timeout_s
            for each in runners:
                # They share the processors.
                each.constructed(len(runners) * timeout_s)
        finally:
            weights.close()
        return runner.fit
