"""One part of a prompt, and where parts are cut."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Where feedback is cut, so that a prompt stays within bounds however long a run gets."""

    source_characters: int = 40_000
    explanation_characters: int = 6_000
    history_rows: int = 40
    plan_characters: int = 200
    profile_lines: int = 25
    raw_characters: int = 6_000


LIMITS = Limits()


@dataclass(frozen=True)
class Section:
    """One part of the prompt. Of feedback, `title` is its heading."""

    title: str
    text: str
    left_out: int = 0
    """Characters that were cut."""


def cut(text: str, limit: int) -> tuple[str, int]:
    """`text`, of which the middle is left out where it is longer than `limit` characters, and how
    many of them that leaves out."""
    if len(text) <= limit:
        return text, 0
    head, tail = 2 * limit // 3, limit // 3
    gap = len(text) - head - tail
    return f"{text[:head]}\n[... {gap} characters left out ...]\n{text[-tail:]}", gap
