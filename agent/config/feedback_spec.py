"""`--feedback`: which components a prompt holds of earlier turns, each real or a control.

On the command line and on disk a specification is text: `G+E+P`, `G+E+placebo:P`, `none`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Self

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema


class Component(StrEnum):
    """What a prompt can show of an earlier kernel, by its letter, in prompt order."""

    KERNEL = "G"
    """Its source."""
    EXECUTION = "E"
    """What building, checking and timing it showed."""
    PROFILE = "P"
    """A summary of its profile. On the command line `P` brings advice and distance, too."""
    ADVICE = "A"
    """What the rules of advice say of its profile."""
    DISTANCE = "S"
    """How far it is from the speed of light."""
    RAW = "R"
    """The profiler's figures as they are."""


MEASURED = (Component.PROFILE, Component.ADVICE, Component.DISTANCE, Component.RAW)
"""Those that a control can stand for."""
_INCLUDED = {Component.PROFILE: (Component.PROFILE, Component.ADVICE, Component.DISTANCE)}
_PROFILED = (Component.PROFILE, Component.ADVICE, Component.RAW)


class Control(StrEnum):
    """What stands in a component's place, to measure what its content is worth."""

    REAL = ""
    PLACEBO = "placebo"
    """Words without content."""
    SHUFFLED = "shuffled"
    """The same component of another kernel."""


@dataclass(frozen=True)
class _Item:
    component: Component
    control: Control

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises `ValueError`."""
        control, _, letter = text.strip().rpartition(":")
        return cls(Component(letter.strip().upper()), Control(control.strip().lower()))

    def __str__(self) -> str:
        return f"{self.control}:{self.component}" if self.control else str(self.component)

    @property
    def includes(self) -> tuple[Component, ...]:
        return _INCLUDED.get(self.component, (self.component,))


@dataclass(frozen=True)
class FeedbackSpec:
    """A parsed specification, in canonical order. Empty: prompts hold nothing of earlier turns."""

    items: tuple[_Item, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `G+E+P` and the like, in any order and case. `P+A` is `P`, which includes A.

        Raises `ValueError` for anything else, and where two items decide what one component is
        (`P` and `placebo:A`).
        """
        if text.strip().lower() == "none":
            return cls()
        items = {_parsed(part, text) for part in text.split("+")}
        kept = [item for item in items if not any(_covers(other, item) for other in items)]
        order = list(Component)
        spec = cls(tuple(sorted(kept, key=lambda i: (order.index(i.component), i.control))))
        for component in MEASURED:
            twice = [str(item) for item in spec.items if component in item.includes]
            if len(twice) > 1:
                raise ValueError(
                    f"{' and '.join(twice)} both decide what {component} is; leave one out"
                )
        return spec

    def __str__(self) -> str:
        return "+".join(map(str, self.items)) or "none"

    def __bool__(self) -> bool:
        return bool(self.items)

    def control_of(self, component: Component) -> Control | None:
        """What stands for a component; None where it is off."""
        return next((i.control for i in self.items if component in i.includes), None)

    def __contains__(self, component: Component) -> bool:
        """Whether it is on, as it is or by a control."""
        return self.control_of(component) is not None

    def only(self, control: Control) -> FeedbackSpec:
        return FeedbackSpec(tuple(item for item in self.items if item.control is control))

    @property
    def needs_profile(self) -> bool:
        """Whether a correct kernel is profiled. A control needs it as the real component does: so
        both are charged the same seconds, and a control stands where the real one would."""
        return any(component in self for component in _PROFILED)


def _parsed(part: str, whole: str) -> _Item:
    try:
        item = _Item.parse(part)
    except ValueError:
        item = None
    if item is None or (item.control and item.component not in MEASURED):
        raise ValueError(
            f"{whole!r} is not any of {', '.join(Component)} joined by +, of which"
            f" {', '.join(MEASURED)} may stand behind placebo: or shuffled:, nor none"
        )
    return item


def _covers(one: _Item, other: _Item) -> bool:
    same = one.control is other.control
    return same and one.component is not other.component and other.component in one.includes


def _spec(value: object) -> FeedbackSpec:
    if isinstance(value, FeedbackSpec):
        return value
    if not isinstance(value, str):
        raise ValueError("a specification of feedback is text, such as G+E+P")
    return FeedbackSpec.parse(value)


Feedback = Annotated[
    FeedbackSpec,
    PlainValidator(_spec),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string"}),
]
"""For models on disk: a `FeedbackSpec` that is written as its text."""
