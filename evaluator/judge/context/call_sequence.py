"""The calls of a candidate's module since it was constructed.

Where a reference keeps a state from call to call, as some recurrent ones do, what a call should
return follows from all calls before it. So both modules get the same calls from a fresh
construction on, a few at most, and are constructed anew then.
"""

from __future__ import annotations

from evaluator.judge.inputs.draws import Draw
from evaluator.judge.workers.module_runner import ModuleRunner

MOST_CALLS = 8
"""A module is constructed anew after these: each verified call costs as many of the reference."""
_KEPT = 2


class CallSequence:
    """The draws of the last two sequences, in order."""

    def __init__(self) -> None:
        self._sequences: list[list[Draw]] = [[]]
        self._runner: ModuleRunner | None = None

    def begin(self, runner: ModuleRunner) -> None:
        """A candidate's module has just been constructed."""
        self._runner = runner
        self._sequences = [*self._sequences[1 - _KEPT :], []]

    def add(self, runner: ModuleRunner, draw: Draw) -> None:
        """A module is about to be called. Where it is the candidate's and has made its calls, it is
        constructed anew. Raises `Rejection`."""
        if runner is not self._runner:
            return
        if len(self._sequences[-1]) >= MOST_CALLS:
            fit = runner.fit
            runner.construct_again()
            runner.fit = fit
            self.begin(runner)
        self._sequences[-1].append(draw)

    def until(self, draw: Draw) -> list[Draw]:
        """All calls from the construction up to the last one with this draw."""
        for sequence in reversed(self._sequences):
            if draw in sequence:
                return sequence[: len(sequence) - sequence[::-1].index(draw)]
        raise ValueError("the module was not called with this draw")
