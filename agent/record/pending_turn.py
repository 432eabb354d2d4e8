"""A turn that is not recorded yet: what is known of it so far, so that a kill costs little."""

from __future__ import annotations

from enum import StrEnum

from pydantic import ValidationError

from agent.record.completion import Usage
from agent.record.turn import Turn


class Work(StrEnum):
    """Work that costs money or device time, and that a kill can interrupt."""

    MODEL = "model"
    JUDGE = "judge"
    PROFILE = "profile"


class PendingTurn(Turn):
    """The last line of `pending/<problem>.<sample>.<turn>.json`, which gets one more with each step
    and is removed once the turn is recorded."""

    wasted: Usage = Usage(cost_usd=0.0)
    """Billed for answers that could not be used before an error ended the asking."""
    profile_seconds: float = 0.0
    in_flight: Work | None = None
    """Begun and not known to have ended: found at the start of a command, it is done again."""

    @property
    def holds_a_bill(self) -> bool:
        """Something was billed that is written down nowhere else."""
        return self.wasted != Usage(cost_usd=0.0)


def read_pending_turn(lines: bytes) -> PendingTurn | None:
    """The last step that was written whole; None where a kill or a power cut left none. Then the
    turn begins anew: its prompt is rendered as before, and its answer is found by it."""
    for line in reversed(lines.splitlines()):
        try:
            return PendingTurn.model_validate_json(line)
        except ValidationError:
            continue
    return None
