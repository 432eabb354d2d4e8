"""Candidates that are wrong: a task's own module with the spoiler around it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

RIGHT_CALLS = 10
"""Calls that a late version answers right. The judge makes three before timing and nine timed ones
at least, so that it meets a wrong one however slow the task is."""
_SPOILER = Path(__file__).with_name("spoiler.py")


class Kind(StrEnum):
    """What is wrong with a version."""

    ELEMENT = "element"
    """One element, not the first, is off by three times the root mean square of all."""
    TAIL = "tail"
    """The last partial block is zero."""
    HALF = "half"
    """Inputs and parameters are rounded to fp16."""
    TF32 = "tf32"
    """Inputs are rounded to TF32."""
    MISSING_TERM = "missing_term"
    """An operator, or the last term of one, is left out from the second call on."""
    ZEROS = "zeros"
    """Everything is zero."""
    THREE_TIMES = "three_times"
    """The relative error is three times what the judge allows."""
    LATE = "late"
    """One element is wrong, in late calls only."""


def wrong_source(reference: str, kind: Kind, figure: float) -> str:
    """A candidate that is wrong.

    Args:
        reference: the task's source.
        kind: what is wrong.
        figure: for `three_times` the relative error; for others the place, between 0 and 1.
    """
    spoiling = {Kind.THREE_TIMES: "scale", Kind.LATE: "element"}.get(kind, str(kind))
    right_calls = RIGHT_CALLS if kind is Kind.LATE else 0
    # In a module of its own: none of its names may replace one of the task's.
    return (
        f"{reference}\n\n"
        "import types as _types\n\n"
        '_spoiler = _types.ModuleType("spoiler")\n'
        f"exec({_SPOILER.read_text()!r}, _spoiler.__dict__)\n"
        f"ModelNew = _spoiler.wrong_version({spoiling!r}, Model, {figure!r}, {right_calls})\n"
    )
