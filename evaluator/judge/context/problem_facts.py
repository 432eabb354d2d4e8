"""What the judge finds out about a reference before any candidate comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from evaluator.errors import UnusableReferenceError
from evaluator.ipc.reply import OutputLayout
from evaluator.judge.blockwise import all_close, same
from evaluator.judge.context.judge_memory import JudgeMemory
from evaluator.judge.problem.reference import Reference, flatten_arguments
from evaluator.judge.problem.variation import fresh_seed
from evaluator.judge.workers.output_memory import Borrowed, any_repeats
from evaluator.protocol import Rules

_SLACK = 2**20
_RUNS, _FEW = 4, 4096


@dataclass(frozen=True)
class ProblemFacts:
    outputs: list[torch.Tensor]
    """Without values: shapes, strides and dtypes."""
    forward_bytes: int
    """Most of a GPU's memory that the reference takes during a call, outputs included."""
    reproducible: bool
    """The same seed gives the same inputs again."""
    changes_inputs: bool
    borrowed: Borrowed
    """What the reference's own outputs share with others, which a candidate's may share too."""
    is_random: bool
    """The reference draws random numbers, as dropout does in training."""
    keeps_state: bool
    """What a call returns depends on the calls before."""
    notes: tuple[str, ...]
    in_one_process: bool
    """With candidates; see `Rules`."""

    @property
    def compares_inputs(self) -> bool:
        """Whether the inputs, as a call leaves them, count as outputs; not with KernelBench."""
        return self.changes_inputs and not self.in_one_process

    @property
    def runs_reference_beside(self) -> bool:
        """Whether the reference runs in the candidate's process, on the same inputs and with equal
        seeds, as KernelBench runs it."""
        return self.in_one_process and not (self.keeps_state or self.changes_inputs)

    @property
    def output_bytes(self) -> int:
        size = sum(t.numel() * t.element_size() + 512 for t in self.outputs) + _SLACK
        return size * (2 if self.runs_reference_beside else 1)


def examine(
    reference: Reference, rules: Rules, memory: JudgeMemory
) -> tuple[ProblemFacts, list[Any]]:
    """The facts, and inputs of one call. Sets `reference.changes_inputs`.

    The reference must repeat itself, with a state that starts anew if need be: otherwise raises
    `UnusableReferenceError`.
    """
    seed = fresh_seed()
    values = reference.fresh_inputs(seed)
    reproducible = _all_same(values, reference.fresh_inputs(seed))
    before = None if reproducible else [t.clone() for t in flatten_arguments(values)]
    with memory.measured() as taken:
        outputs = reference.run(values)
    if reference.problem.is_function:
        shapes = [t.shape for t in outputs]
        # Where shapes depend on values, a few draws may agree by chance.
        draws = (reference.run(reference.fresh_inputs(fresh_seed())) for _ in range(8))
        if any([t.shape for t in others] != shapes for others in draws):
            reference.only_seed = seed
    own = [tensor.untyped_storage().data_ptr() for tensor in outputs]
    lent = {tensor.untyped_storage().data_ptr() for tensor in flatten_arguments(values)}
    layouts = [OutputLayout("uint8", tuple(t.shape), tuple(t.stride()), 0) for t in outputs]
    notes = constant_outputs(outputs, lambda: reference.run(reference.fresh_inputs(fresh_seed())))
    if before is None:
        again = reference.fresh_inputs(seed)
        reference.changes_inputs = not _all_same(values, again)
        values = again
    else:
        reference.changes_inputs = not _all_same(values, before)
    del before
    is_random = keeps_state = False
    forms = [
        torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta") for t in outputs
    ]
    if not reference.changes_inputs:
        torch.manual_seed(fresh_seed())
        differs = _differs(reference, outputs, values)
        del outputs
        seed = fresh_seed()
        if reference.carries_buffers(lambda: reference.run(values, seed)):
            keeps_state = True
        elif differs:
            is_random = all_close(*(reference.run(values, seed) for _ in range(2)))
            keeps_state = not is_random
        if keeps_state:
            is_random = _explored_state(reference, values)
    facts = ProblemFacts(
        outputs=forms,
        forward_bytes=sum(taken),
        reproducible=reproducible,
        changes_inputs=reference.changes_inputs,
        borrowed=Borrowed(not lent.isdisjoint(own), len(set(own)) < len(own), any_repeats(layouts)),
        is_random=is_random,
        keeps_state=keeps_state,
        notes=notes,
        in_one_process=rules.in_one_process,
    )
    return facts, values


def _explored_state(reference: Reference, values: list[Any]) -> bool:
    """Whether a reference with a state, restarted from now on, is random as well. The same calls
    from a fresh construction on must give the same outputs."""
    seed, other = fresh_seed(), fresh_seed()
    reference.keep_state()

    def restarted(seed: int) -> list[torch.Tensor]:
        reference.restart()
        return reference.run(values, seed)

    if not all_close(restarted(seed), restarted(seed)):
        raise UnusableReferenceError(
            "the reference gives other outputs for the same inputs and the same random seed, "
            "also when it is constructed anew: it draws from a generator that "
            "torch.manual_seed does not seed"
        )
    return not all_close(restarted(seed), restarted(other))


def _differs(reference: Reference, outputs: list[torch.Tensor], values: list[Any]) -> bool:
    few = sum(map(torch.numel, outputs)) < _FEW
    for _ in range(_RUNS):
        state = _generator_state(reference.device)
        others = reference.run(values)
        if not all_close(outputs, others):
            return True
        if all(map(same, outputs, others)):
            # Of few numbers dropout may well drop the same ones twice.
            return few and not torch.equal(state, _generator_state(reference.device))
    return False


def _generator_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _all_same(values: list[Any], others: list[Any]) -> bool:
    pairs = zip(flatten_arguments(values), flatten_arguments(others), strict=True)
    return all(same(one, other) for one, other in pairs)


def constant_outputs(outputs: list[Tensor], others: Callable[[], list[Tensor]]) -> tuple[str, ...]:
    """A note where the outputs hold the same number all over for two draws of the inputs.

    Args:
        outputs: of one draw.
        others: makes those of another draw.
    """
    found = [_single_value(tensor) for tensor in outputs]
    if not found or None in found or [_single_value(tensor) for tensor in others()] != found:
        return ()
    values = ", ".join(f"{value + 0.0:g}" for value in dict.fromkeys(found) if value is not None)
    return (
        f"the reference's outputs are {values} all over, whatever the inputs are: "
        "a kernel that returns this without any work is right as well",
    )


def _single_value(tensor: Tensor) -> float | None:
    if tensor.numel() < 2 or tensor.is_complex():
        return None
    low, high = tensor.aminmax()
    return float(low) if bool(low == high) else None
