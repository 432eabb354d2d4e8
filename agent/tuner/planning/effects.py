"""What the choices seem to be worth, learnt from the few trials that a prompt tells of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from agent.tuner.planning.schedule import Schedule

_ROUNDS = 20
_SHRINKAGE = 1.0
"""Each choice is held back as by that many trials in which it changed nothing."""


@dataclass(frozen=True)
class Effects:
    """An additive model of the logarithm of the speedup: one term for each choice of a knob."""

    terms: Mapping[tuple[str, str], float]

    def gain(self, old: Schedule, new: Schedule) -> float:
        """Expected logarithm of how many times faster `new` is; unknown choices count as 0."""
        return sum(
            self.terms.get((knob, choice), 0.0) - self.terms.get((knob, old[knob]), 0.0)
            for knob, choice in new.choices.items()
            if old[knob] != choice
        )


def fit(trials: Sequence[tuple[Schedule, float]]) -> Effects:
    """Ridge regression on the choices, by coordinate descent; trials are (schedule, speedup)."""
    logs = [log(speedup) for _, speedup in trials]
    mean = sum(logs) / len(logs) if logs else 0.0
    left = [value - mean for value in logs]
    holders: dict[tuple[str, str], list[int]] = {}
    for index, (schedule, _) in enumerate(trials):
        for pair in schedule.choices.items():
            holders.setdefault(pair, []).append(index)
    # What all have in common explains no difference.
    holders = {pair: held for pair, held in holders.items() if len(held) < len(trials)}
    terms = dict.fromkeys(holders, 0.0)
    for _ in range(_ROUNDS):
        for pair, indices in holders.items():
            old = terms[pair]
            total = sum(left[i] + old for i in indices)
            terms[pair] = total / (len(indices) + _SHRINKAGE)
            for i in indices:
                left[i] += old - terms[pair]
    return Effects(terms)
