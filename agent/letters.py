"""The letters of `--feedback`: what a prompt tells of earlier turns, and whether that is so.

G is the kernel's source, E what execution said, P what the profiler said: a summary, A its advice
and S the distance to the speed of light. R are the profiler's figures as they are. Before P, A, S
or R, `placebo:` puts words without content and `shuffled:` the same of another kernel: controls, to
measure what the content is worth.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

LETTERS = "GEPASR"
MEASURED = "PASR"
"""Told of the kernel to refine, in this order; each may be replaced by a control."""
_BRINGS = {"P": "PAS"}
"""Of the other letters each brings itself alone."""


class Control(StrEnum):
    """As what a letter is told."""

    REAL = ""
    PLACEBO = "placebo"
    SHUFFLED = "shuffled"


class _Item(NamedTuple):
    letter: str
    control: Control

    def __str__(self) -> str:
        return f"{self.control}:{self.letter}" if self.control else self.letter

    @property
    def brings(self) -> str:
        return _BRINGS.get(self.letter, self.letter)


def canonical_letters(text: str) -> str:
    """`p+g` -> `G+P`, `P+A` -> `P`, which holds A already; `none` stays.

    Raises `ValueError` for anything else, and where two items say different things of one letter
    (`P` and `placebo:A`).
    """
    if text.strip().lower() == "none":
        return "none"
    items = {_parse(part, text) for part in text.split("+")}
    kept = sorted(
        (item for item in items if not any(_holds(other, item) for other in items)),
        key=lambda item: (LETTERS.index(item.letter), item.control),
    )
    for letter in MEASURED:
        twice = [str(item) for item in kept if letter in item.brings]
        if len(twice) > 1:
            raise ValueError(f"{' and '.join(twice)} both decide what {letter} is; leave one out")
    return "+".join(map(str, kept))


def told_as(letters: Collection[str], letter: str) -> Control | None:
    """As what `letters` (canonical items) tell `letter`; None where it is off."""
    for item in map(_split, letters):
        if letter in item.brings:
            return item.control
    return None


def need_profile(letters: Collection[str]) -> bool:
    """Whether a correct kernel is profiled.

    For a control as for the real letter: so both are charged the same seconds, and a control is
    shown where the real one would have been, as long as that. S alone needs no profiler.
    """
    return any(told_as(letters, letter) is not None for letter in "PAR")


def _parse(part: str, whole: str) -> _Item:
    try:
        item = _split(part.strip())
    except ValueError:
        item = _Item("", Control.REAL)
    if len(item.letter) != 1 or item.letter not in (MEASURED if item.control else LETTERS):
        raise ValueError(
            f"{whole!r} is not any of {', '.join(LETTERS)} joined by +, of which"
            f" {', '.join(MEASURED)} may stand behind placebo: or shuffled:, nor none"
        )
    return item


def _split(item: str) -> _Item:
    control, _, letter = item.rpartition(":")
    return _Item(letter.strip().upper(), Control(control.strip().lower()))


def _holds(one: _Item, other: _Item) -> bool:
    same = one.control is other.control
    return same and one.letter != other.letter and other.letter in one.brings
