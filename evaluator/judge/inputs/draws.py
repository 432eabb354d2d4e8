"""Fresh inputs for the calls of one problem, and where they lie for the workers."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from evaluator.judge.blockwise import same
from evaluator.judge.inputs.arena import make_arena
from evaluator.judge.inputs.input_fitness import is_taken
from evaluator.judge.inputs.input_kinds import InputKinds
from evaluator.judge.inputs.mapped_arguments import MappedArguments
from evaluator.judge.inputs.placement import MARGINS, Placement
from evaluator.judge.problem.reference import Reference, flatten_arguments
from evaluator.judge.problem.variation import Kind, fresh_seed, kind_of, nearly, of_kind
from evaluator.worker.values import decode

_SHIFTS = 128
_SHIFT_BYTES = 512
_NEAR_ONE_IN = 8
_PUBLIC = of_kind(1 << 8, Kind.PLAIN)
"""The one seed of a protocol that has one."""
_FIXED = 2
"""Of each kind, where an error is near its limit."""
_KEPT_BYTES = 2**26
"""Inputs that are larger are made anew from their seed when they are needed again."""
_MOST_STAGED_SHARE = 32
"""Inputs that take more than this part of a GPU's memory are not staged, but kept until they are
laid, and made anew from their seed for the next call."""


@dataclass(frozen=True)
class Draw:
    """Fresh inputs of one call: the seed, where they lie in the input arena, and their values
    where these are kept."""

    seed: int
    start: int
    """Where in the arena they begin."""
    at_end: int | None
    """Which of the tensors lies at the arena's end, behind which a worker has no memory."""
    order: MappedArguments
    kept: list[Any] | None
    random_seed: int | None = None
    """For PyTorch's generators before the call, where the reference draws random numbers."""


class Draws:
    def __init__(
        self,
        reference: Reference,
        size: int,
        kinds: InputKinds,
        *,
        tensors: int = 1,
        reproducible: bool,
        is_random: bool,
    ) -> None:
        """Makes the arena; raises `DeviceError` where there is no memory for it.

        Args:
            reference: makes the inputs.
            size: bytes that the inputs of a call take.
            kinds: which kinds of inputs there are.
            tensors: how many there are among the inputs of a call.
            reproducible: the same seed gives the same inputs again.
            is_random: the reference draws random numbers.
        """
        self._reference = reference
        self._kinds = kinds
        self._repeats = reference.rules.repeats_inputs and reference.only_seed is None
        self._is_random = is_random
        # KernelBench's inputs lie where those of the trial before lay, as a rule.
        self._moves = not reference.rules.in_one_process
        self.writable = reference.changes_inputs or reference.rules.in_one_process
        """Whether workers may write into the inputs; what KernelBench allows is a finding."""
        self.ends = tensors if self._moves else 0
        """How many of the tensors may lie at the arena's end."""
        self._keeps = not reproducible or (size < _KEPT_BYTES and not reference.changes_inputs)
        self._seed: int | None = None
        self._start = _SHIFT_BYTES
        # In turn, so that the first three calls of any candidate meet all of them.
        self._margins = itertools.cycle(MARGINS)
        self.arena = make_arena(
            reference.device,
            size + (1 + _SHIFTS) * _SHIFT_BYTES,
            read_only_for_others=not self.writable,
        )
        self._last: MappedArguments | None = None
        self._staging = _staging(self.arena.bytes)

    def begin(self) -> None:
        """A new candidate: it meets each kind of inputs in its first few calls."""
        self._kinds.begin()

    def plain(self) -> Draw:
        return self._draw(fresh_seed())

    def next(self, *, near: bool = False, at_end: int | None = None) -> Draw:
        """Fresh inputs, at the last address or at another one in the arena.

        `near`: those of the last draw but for an element or two; that happens at times anyway.
        `at_end`: which of the tensors lies at the arena's end, if there are so many.
        """
        near = self._repeats and (near or secrets.randbelow(_NEAR_ONE_IN) == 0)
        if near and self._seed is not None:
            self._seed = nearly(self._seed)
        else:
            self._seed = self._fresh_seed()
        return self._draw(self._seed, at_end=at_end)

    def fixed(self) -> Iterator[Draw]:
        """The same inputs each time, several of each kind."""
        for number in range(_FIXED):
            for kind in dict.fromkeys(self._kinds.all):
                seed = of_kind(number << 8, kind)
                if is_taken(self._reference, seed):
                    yield self._draw(seed)

    def at(self, earlier: Draw) -> Draw:
        self._start = earlier.start
        return self._draw(fresh_seed(), moves=False, at_end=earlier.at_end)

    def elsewhere(self) -> Draw:
        """Fresh plain inputs at another address than the last ones; the next ones return there."""
        before = self._start
        self._start = _SHIFT_BYTES * secrets.choice(
            [shift for shift in range(1, 1 + _SHIFTS) if shift * _SHIFT_BYTES != before]
        )
        try:
            return self._draw(fresh_seed(), moves=False)
        finally:
            self._start = before

    def instead(self, draw: Draw, values: list[Any]) -> Draw:
        return replace(draw, order=self._lay(values, draw.start, MARGINS[0]), kept=values)

    def _draw(self, seed: int, *, moves: bool = True, at_end: int | None = None) -> Draw:
        if moves and self._moves and secrets.randbelow(2):
            self._start = (1 + secrets.randbelow(_SHIFTS)) * _SHIFT_BYTES
        at_end = at_end if at_end in range(self.ends) else None
        values = self._reference.varied_inputs(seed)
        return Draw(
            seed,
            self._start,
            at_end,
            self._lay(values, self._start, next(self._margins), at_end),
            values if self._keeps else None,
            secrets.randbits(62) if self._is_random else None,
        )

    def _fresh_seed(self) -> int:
        if self._reference.rules.one_seed:
            return _PUBLIC
        while not is_taken(self._reference, seed := fresh_seed(self._kinds.next())):
            self._kinds.drop(kind_of(seed))
        return seed

    def values_of(self, draw: Draw) -> list[Any]:
        """The arguments of a call, made anew where they were not kept. A module that works in
        place changes them."""
        return self._reference.varied_inputs(draw.seed) if draw.kept is None else draw.kept

    def holds(self, draw: Draw) -> bool:
        wanted = flatten_arguments(self.values_of(draw))
        pairs = zip(self._views(draw), wanted, strict=True)
        return all(same(one, other.to(one.device)) for one, other in pairs)

    def lying(self, draw: Draw) -> list[torch.Tensor]:
        """Copies of the tensors among the inputs of the last call, as they lie there now."""
        return [tensor.clone() for tensor in self._views(draw)]

    def _views(self, draw: Draw) -> list[torch.Tensor]:
        arguments = draw.order.arguments
        return flatten_arguments([decode(v, self.arena.bytes, lambda t: t) for v in arguments])

    def laid(self, draw: Draw) -> MappedArguments:
        """A draw's arguments, laid once more where those of another draw have overwritten them."""
        if draw.order is self._last and not draw.order.is_spent:
            return draw.order
        return self._lay(self.values_of(draw), draw.start, MARGINS[0], draw.at_end)

    def lay_again(self, draw: Draw) -> MappedArguments:
        return self._lay(self.values_of(draw), _SHIFT_BYTES, MARGINS[0])

    def _lay(
        self, values: list[Any], start: int, margin: int, at_end: int | None = None
    ) -> MappedArguments:
        placement = Placement(self._staging, start, margin, at_end)
        self._last = MappedArguments(self.arena.bytes, placement, values)
        return self._last


def _staging(arena: torch.Tensor) -> torch.Tensor:
    """Memory of the judge's own, as large as the arena; without values for large inputs of a
    GPU."""
    if arena.is_cuda:
        total = torch.cuda.get_device_properties(arena.device).total_memory
        if arena.numel() > total // _MOST_STAGED_SHARE:
            return torch.empty_like(arena, device="meta")
    return torch.empty_like(arena)
