"""The calls of a candidate's module since it was constructed.

Where a reference keeps a state from call to call, as some recurrent ones do, what a call should
return follows from all calls before it. So both sides get the same calls from a fresh construction
on, a few at most, and are constructed anew then.
"""

from __future__ import annotations

from evaluator.judge.inputs.draws import Draw
from evaluator.judge.workers.side import Side

MOST_CALLS = 8
"""After so many a module is constructed anew: each verified call costs as many of the reference."""
_KEPT = 2


class CallSequence:
    """The draws of the last two sequences, in order."""

    def __init__(self) -> None:
        self._sequences: list[list[Draw]] = [[]]
        self._side: Side | None = None

    def begin(self, side: Side) -> None:
        """A candidate's module has just been constructed."""
        self._side = side
        self._sequences = [*self._sequences[1 - _KEPT :], []]

    def add(self, side: Side, draw: Draw) -> None:
        """A module is about to be called. Where it is the candidate's and has made its calls, it is
        constructed anew. Raises `Refusal`."""
        if side is not self._side:
            return
        if len(self._sequences[-1]) >= MOST_CALLS:
            fit = side.fit
            side.construct_again()
            side.fit = fit
            self.begin(side)
        self._sequences[-1].append(draw)

    def until(self, draw: Draw) -> list[Draw]:
        """All calls from the construction up to the last one with this draw."""
        for sequence in reversed(self._sequences):
            if draw in sequence:
                return sequence[: len(sequence) - sequence[::-1].index(draw)]
        raise ValueError("the module was not called with this draw")
