"""Which kinds of inputs the calls of a problem get, and in which order."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from evaluator.judge.bounds.work import Work
from evaluator.judge.problem.variation import FACTORS, Kind
from evaluator.protocol import RULES
from evaluator.settings import Settings

_GENTLE = (Kind.SMALLER, Kind.UNEVEN, Kind.BIASED)
_PLAIN = (Kind.PLAIN,) * 3
"""This many plain draws come with one of each other kind."""


def kinds_for(settings: Settings, work: Work) -> tuple[Kind, ...]:
    """The kinds that a protocol uses, each as often as it comes among that many draws.

    A reference that might end its process on numbers out of some range gets smaller ones only, and
    one whose control flow depends on them gets what the recipe draws.
    """
    inputs = RULES[settings.protocol].inputs
    if inputs == "recipe" or settings.inputs == "recipe" or work.reads_values:
        return (Kind.PLAIN,)
    gentle = work.asserts_values
    if inputs == "scaled":
        return (Kind.PLAIN, *(() if gentle else FACTORS))
    return (*_PLAIN, *_GENTLE, *(() if gentle else (Kind.LARGER, Kind.SIGNED)))


class InputKinds:
    """Hands out kinds in a secret order, so that a few calls meet all of them."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.all = tuple(kinds)
        """As often as each comes among that many draws."""
        self._left: list[Kind] = []

    def begin(self) -> None:
        """Begin a new round: the next kinds are all different, until each has come once."""
        self._left = _shuffled(set(self.all))

    def next(self) -> Kind:
        if not self._left:
            self._left = _shuffled(self.all)
        return self._left.pop()

    def drop(self, kind: Kind) -> None:
        self.all = tuple(each for each in self.all if each is not kind)
        self._left = [each for each in self._left if each is not kind]


def _shuffled(kinds: Collection[Kind]) -> list[Kind]:
    return random.SystemRandom().sample(sorted(kinds), len(kinds))
