"""The details of one trajectory's turns, as they are stored apart and opened on demand."""

from __future__ import annotations

from experiments.page.page_data import PageModel


class TextRef(PageModel):
    """A text: its hash, and the trajectory whose block holds it. None: the block at hand."""

    hash: str
    block: int | None = None


class Section(PageModel):
    """One part of a turn: a heading and a text."""

    title: str
    text: TextRef | None
    missing: str = ""
    """Why there is no text."""
    folded: bool = False
    """Shown when asked for."""


class KernelChange(PageModel):
    """A turn's kernel beside an earlier one."""

    before: TextRef
    before_call: int
    steps: tuple[tuple[int, int, int, int], ...]
    """Runs of lines that differ: begin and end before, begin and end now, from 0."""


class TurnDetail(PageModel):
    """One turn, all of it."""

    heading: str
    """What became of it."""
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    kernel: TextRef | None
    kernel_missing: str = ""
    """Why there is no kernel to show."""
    change: KernelChange | None = None
    """None: there is no earlier kernel."""


class TurnBlock(PageModel):
    """One trajectory: its turns by call, and the texts that no earlier block holds."""

    turns: dict[int, TurnDetail]
    texts: dict[str, str]
    """By hash."""
    spans: dict[str, tuple[int, ...]]
    """Of each text that is code: class, length, class, length, ... (`code_spans`)."""
