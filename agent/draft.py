"""A turn that is not recorded yet: what is known of it so far, so that a kill costs little."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from agent.llm.completion import Usage
from evaluator.evaluation import Evaluation
from tools.profile_report import Profile


class Stage(StrEnum):
    """Work that costs money or device time, and that a kill can interrupt."""

    MODEL = "model"
    JUDGE = "judge"
    PROFILE = "profile"


class Draft(BaseModel):
    """`pending/<problem>.<sample>.<turn>.json`: replaced whole after each step, and removed once
    the turn is recorded. Frozen: a step makes a new one."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    prompt: str
    """Hash: `prompts/<hash>.txt`."""
    completion: str
    """Hash under which the answer is, or will be, stored."""
    wasted: Usage = Usage(cost_usd=0.0)
    """Billed for answers that could not be used before an error ended the asking."""
    parent: str | None = None
    """Hash of the kernel that the prompt asks to refine."""
    candidate: str | None = None
    """Hash: `kernels/<hash>.py`; None before the answer is parsed, and for `no_code`."""
    plan: str = ""
    evaluation: Evaluation | None = None
    judged_with: str = ""
    """As in `TurnRecord`."""
    profile: Profile | None = None
    profiled_with: str = ""
    profile_error: str = ""
    profile_seconds: float = 0.0
    in_flight: Stage | None = None
    """Begun and not known to have ended: found at the start of a command, it is done again."""
    repeated: int = 0
