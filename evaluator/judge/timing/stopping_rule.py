"""When the timing of one worker may end before its time is up."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator.evaluation import Stopped
from evaluator.judge.timing.interval import VERDICT_CONFIDENCE, median_interval
from evaluator.settings import Settings

FEWEST_BLOCKS = 10
CLEAR_RATIO = 1.5
"""A kernel that is this many times faster or slower needs no narrow interval."""
_LOOKS = (12, 24, 48, 96, 192)
"""Undisturbed blocks after which it is seen whether a kernel is so. In a first worker ten calls are
verified: what is wrong only after them can't bring about the first two of these looks, and at each
later one there were 38 calls and more of which one in four was verified."""
_LOOK_CONFIDENCE = 1 - (1 - VERDICT_CONFIDENCE) / len(_LOOKS)
"""So all looks together are wrong no more often than a verdict may be (Bonferroni)."""


def early_stop(
    blocks: int, ratios: Sequence[Sequence[float]], settings: Settings, *, restless: bool
) -> Stopped | None:
    """Why no more blocks are needed, if so. `ratios`: the paired ones beside each baseline.

    `precise`: each 95 % interval is narrow. `clear`: each is at least not wide, and the kernel is
    so much faster or slower than each baseline that the length of the sampling changes no verdict.
    `restless`: so many blocks were disturbed that the verdict would not be given.
    """
    if blocks < FEWEST_BLOCKS or not all(ratios):
        return None
    width = max(median_interval(each).relative_width for each in ratios)
    if width < settings.relative_width:
        return "precise"
    may_be_clear = blocks in _LOOKS and width < settings.clear_width and not restless
    return "clear" if may_be_clear and all(_is_clear(each) for each in ratios) else None


def _is_clear(ratios: Sequence[float]) -> bool:
    interval = median_interval(ratios, _LOOK_CONFIDENCE)
    return interval.low > CLEAR_RATIO or interval.high < 1 / CLEAR_RATIO
