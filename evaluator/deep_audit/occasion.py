"""Whether a candidate is audited after its verdict, and why."""

from __future__ import annotations

import re
from typing import Literal

from evaluator.evaluation import Evaluation, Status
from evaluator.reason import Reason
from evaluator.settings import Settings

HARD_TO_BELIEVE = 10.0
"""A speedup over eager from which on a candidate is looked at closely."""

Occasion = Literal["asked", "speedup", "under_bound", "required"]

_SIGNALS = frozenset(
    {
        Reason.SEGFAULT,
        Reason.SIGBUS,
        Reason.ABORT,
        Reason.SIGFPE,
        Reason.SIGILL,
        Reason.SIGTRAP,
        Reason.MEMORY_ERROR,
    }
)
_FAULT = re.compile(
    r"illegal memory access|misaligned address|unspecified launch failure|device-side assert|"
    r"illegal instruction|illegal address|hardware stack error|invalid program counter"
)


def crashed(evaluation: Evaluation, settings: Settings) -> bool:
    if settings.audit == "never" or evaluation.status is not Status.RUNTIME_ERROR:
        return False
    if settings.device != "cpu":
        # Of a fault on the host's side memcheck knows nothing.
        return _FAULT.search(f"{evaluation.message}\n{evaluation.detail}") is not None
    return evaluation.reason in _SIGNALS and evaluation.build is not None and evaluation.build.ok


def occasion_for(evaluation: Evaluation, settings: Settings) -> Occasion | None:
    """Why this candidate is audited; None where it isn't. Only what is correct and timed is."""
    timing = evaluation.timing
    if evaluation.status is not Status.CORRECT or timing is None:
        return None
    if settings.audit == "always":
        return "asked"
    if settings.audit == "auto":
        if timing.speedup > HARD_TO_BELIEVE:
            return "speedup"
        if timing.bound_us is not None and timing.latency_us < timing.bound_us:
            return "under_bound"
    return None if settings.require == "any" else "required"
