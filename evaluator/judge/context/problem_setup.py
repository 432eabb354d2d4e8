"""One problem set up on one device, before there are baselines: reference, inputs and memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch

from evaluator.evaluation import ProblemRequest
from evaluator.judge.bounds.work import Work, count_work
from evaluator.judge.context.cache_flush import CacheFlush
from evaluator.judge.context.judge_memory import JudgeMemory
from evaluator.judge.context.problem_facts import ProblemFacts, examine
from evaluator.judge.context.worker_factory import WorkerFactory
from evaluator.judge.inputs.draws import Draws
from evaluator.judge.inputs.input_fitness import is_fit
from evaluator.judge.inputs.input_kinds import InputKinds, kinds_for
from evaluator.judge.inputs.placement import bytes_needed
from evaluator.judge.problem.exact_reference import ExactReference
from evaluator.judge.problem.reference import Reference, flatten_arguments
from evaluator.judge.problem.variation import Kind

CONTEXT_BYTES = 2**30
"""That another worker's context takes of a GPU's memory, at most."""
_LARGE_BYTES = 2**30
"""Of inputs, from which on the reference in fp64 is made in slices where that is the same."""


@dataclass(frozen=True)
class ProblemSetup:
    device: torch.device
    workers: WorkerFactory
    reference: Reference
    exact: ExactReference
    facts: ProblemFacts
    work: Work
    draws: Draws
    memory: JudgeMemory
    flush: CacheFlush

    @property
    def worker_bytes(self) -> int:
        module = self.reference.weight_bytes + self.facts.forward_bytes
        return int(module + self.facts.output_bytes + CONTEXT_BYTES)

    def bytes_to_verify(self) -> int:
        call = 3 * (self.draws.arena.size + self.facts.forward_bytes)
        most = max(self.memory.verifying_bytes, call + 2 * self.reference.weight_bytes)
        return int(most + 2 * self.facts.output_bytes)

    @property
    def needed_bytes(self) -> int:
        """What judging takes at least: a candidate, eager, and verifying one call."""
        return self.draws.arena.size + 2 * self.worker_bytes + self.bytes_to_verify()

    def give_memory_back(self) -> None:
        self.exact.forget()
        self.memory.give_back()


def set_up(request: ProblemRequest, workers: WorkerFactory) -> ProblemSetup:
    """Raises `UnusableReferenceError` or `DeviceError`."""
    device, rules, settings = workers.device, workers.rules, request.settings
    reference = Reference(request.reference, device, settings.precision, rules)
    memory = JudgeMemory(device)
    facts, values = examine(reference, rules, memory)
    flush = CacheFlush(device, memory)
    work = count_work(reference.model, values, settings.precision)
    size, tensors = bytes_needed(values), len(flatten_arguments(values))
    del values
    large = size > _LARGE_BYTES and not facts.keeps_state
    exact = ExactReference(reference, slices_first=large)
    # Thresholds are absolute: they hold for the recipe's numbers.
    plain = bool(reference.problem.thresholds) or reference.only_seed is not None
    kinds = InputKinds((Kind.PLAIN,) if plain else kinds_for(settings, work))
    for kind in set(kinds.all) - {Kind.PLAIN}:
        if facts.keeps_state or not is_fit(
            reference,
            kind,
            lambda seed: exact.outputs(partial(reference.varied_inputs, seed))[0],
            settings,
            work.accumulation,
            is_random=facts.is_random,
        ):
            kinds.drop(kind)
    exact.forget()
    memory.give_back()
    draws = Draws(
        reference,
        size,
        kinds,
        tensors=tensors,
        reproducible=facts.reproducible,
        is_random=facts.is_random,
    )
    return ProblemSetup(device, workers, reference, exact, facts, work, draws, memory, flush)
