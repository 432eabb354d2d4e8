"""Which kinds of inputs the calls of a problem get, and in which order."""

from __future__ import annotations

import random
from collections.abc import Sequence

from evaluator.evaluation import Settings
from evaluator.judge.variation import FACTORS, Kind

_GENTLE = (Kind.SMALLER, Kind.UNEVEN)
_PLAIN = (Kind.PLAIN,) * 3
"""So many plain draws come with one of each other kind."""


def kinds_for(settings: Settings, *, gentle: bool) -> tuple[Kind, ...]:
    """The kinds that a protocol uses, each as often as it comes among that many draws.

    `gentle`: the reference might end its process on numbers that are out of some range, so that
    they only become smaller.
    """
    if settings.protocol == "kernelbench" or settings.inputs == "recipe":
        return (Kind.PLAIN,)
    if settings.protocol == "verified":
        return (Kind.PLAIN, *(() if gentle else FACTORS))
    return (*_PLAIN, *_GENTLE, *(() if gentle else (Kind.LARGER, Kind.SIGNED)))


class InputKinds:
    """Hands out kinds in a secret order, so that a few calls meet all of them."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = list(kinds)
        self._left: list[Kind] = []
        self._known = {Kind.PLAIN}

    def next(self) -> Kind:
        """The kind of the next inputs."""
        if not self._left:
            self._left = random.SystemRandom().sample(self._kinds, len(self._kinds))
        return self._left.pop()

    def known(self, kind: Kind) -> bool:
        """Whether the reference was seen to take inputs of this kind."""
        return kind in self._known

    def note(self, kind: Kind, *, fits: bool) -> None:
        """Go on to use a kind, or use it no more."""
        if fits:
            self._known.add(kind)
        else:
            self._kinds = [each for each in self._kinds if each is not kind]
            self._left = [each for each in self._left if each is not kind]
