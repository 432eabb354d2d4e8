"""One change to a source, and the rules that find places for one kind of change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from tests.mutation.subject import Subject

Kind = Literal["cpp", "python", "output"]
"""What a rule changes: C++ text, Python text, or the outputs of a right kernel."""


@dataclass(frozen=True)
class Edit:
    """`source[start:end]` becomes `text`."""

    start: int
    end: int
    text: str

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]

    def shown(self, source: str) -> str:
        """The changed line before and after, or what was added at the end of the file."""
        if self.start >= len(source.rstrip()):
            return self.text.strip().splitlines()[-1].strip()
        top = source.rfind("\n", 0, self.start) + 1
        bottom = source.find("\n", self.end)
        before = source[top : bottom if bottom >= 0 else None]
        after = source[top : self.start] + self.text + source[self.end : max(bottom, self.end)]
        return f"{_one_line(before)}  =>  {_one_line(after) or '(gone)'}"


@dataclass(frozen=True)
class Rule:
    """One kind of mistake."""

    name: str
    kind: Kind
    edits: Callable[[Subject], Iterator[Edit]]
    """All places of a subject's source where it can be made."""


def _one_line(text: str) -> str:
    return " ".join(text.split())
