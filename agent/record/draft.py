"""A turn that is not recorded yet: what is known of it so far, so that a kill costs little."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.record.completion import Usage
from agent.record.prompt_ledger import PromptLedger
from agent.record.turn import ShuffledKernel
from evaluator.evaluation import Evaluation
from tools.profiling.profile_report import Profile


class Stage(StrEnum):
    """Work that costs money or device time, and that a kill can interrupt."""

    MODEL = "model"
    JUDGE = "judge"
    PROFILE = "profile"


class Draft(BaseModel):
    """The last line of `pending/<problem>.<sample>.<turn>.json`, which gets one more with each step
    and is removed once the turn is recorded. Frozen: a step makes a new one."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    prompt: str
    """Hash: `prompts/<hash>.txt`."""
    completion: str
    """Hash under which the answer is, or will be, stored."""
    wasted: Usage = Usage(cost_usd=0.0)
    """Billed for answers that could not be used before an error ended the asking."""
    parent: str | None = None
    """Hash of the kernel that the prompt asks to refine."""
    prompt_ledger: PromptLedger | None = None
    shuffled_with: ShuffledKernel | None = None
    """Both as in `TurnRecord`."""
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

    @property
    def holds_a_bill(self) -> bool:
        """Something was billed that is written down nowhere else."""
        return self.wasted != Usage(cost_usd=0.0)


def read_draft(lines: bytes) -> Draft | None:
    """The last step that was written whole; None where a kill or a power cut left none. Then the
    turn begins anew: its prompt is rendered as before, and its answer is found by it."""
    for line in reversed(lines.splitlines()):
        try:
            return Draft.model_validate_json(line)
        except ValidationError:
            continue
    return None
