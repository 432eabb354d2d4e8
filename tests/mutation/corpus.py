"""Right kernels and wrong versions of them, both frozen.

The kernels: the offline tuner's, recorded ones, operators, some by hand. A mutant is one edit of a
kernel: a mistake in its C++, its Python or the outputs that it returns. They are in the order in
which they were drawn: the first of them come from all rules and kernels alike.
"""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict

Kind = Literal["cpp", "python", "output"]
"""What was changed: C++ text, Python text, or the outputs of a right kernel."""
Origin = Literal["tuner", "recorded", "operators", "hand"]
_FROZEN = Path(__file__).parent / "frozen"


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Line = TypeVar("Line", bound=_Line)


class Subject(_Line):
    """A right kernel and the problem that it solves."""

    name: str
    family: str
    origin: Origin
    reference: str
    source: str


class Mutant(_Line):
    """`source[start:end]` of a subject became `text`."""

    id: str
    """12 hex digits of its problem and source."""
    subject: str
    kind: Kind
    rule: str
    """The kind of mistake."""
    shown: str
    """What was changed, in one line."""
    start: int
    end: int
    text: str

    @property
    def source(self) -> str:
        right = subjects()[self.subject].source
        return right[: self.start] + self.text + right[self.end :]


@cache
def subjects() -> dict[str, Subject]:
    """By their names."""
    return {subject.name: subject for subject in _lines(Subject, "kernels")}


@cache
def mutants() -> tuple[Mutant, ...]:
    return _lines(Mutant, "mutants")


def _lines(kind: type[Line], name: str) -> tuple[Line, ...]:
    text = lzma.decompress((_FROZEN / f"{name}.jsonl.xz").read_bytes()).decode()
    return tuple(kind.model_validate_json(line) for line in text.splitlines())
