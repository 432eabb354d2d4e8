"""What a prompt spends its tokens on, and what of it was left out."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from pydantic import BaseModel, ConfigDict, Field

from agent.record.tokens import estimated_tokens


class PromptLedger(BaseModel):
    """Kept with each turn. Tokens are estimated (`agent.record.tokens`: characters / 4), as the
    provider counts only whole messages."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    tokens: dict[str, int]
    """By section, in their order: `introduction`, `task`, `reference`, `contract`, `answer`,
    `examples`, then the headings of the feedback. They add up to the estimate for the prompt."""
    cut: dict[str, int] = Field(default_factory=dict)
    """Characters left out, of the sections that were too long."""

    @property
    def total(self) -> int:
        """Tokens of the whole prompt."""
        return sum(self.tokens.values())


def ledger_of(pieces: Mapping[str, str], cut: Mapping[str, int]) -> PromptLedger:
    """The ledger of a prompt that is `pieces`, one after the other."""
    # Rounded at the end of each piece, so that the sum is that of the whole.
    ends = [estimated_tokens([text]) for text in accumulate(pieces.values())]
    tokens = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    return PromptLedger(
        tokens=dict(zip(pieces, tokens, strict=True)),
        cut={name: left_out for name, left_out in cut.items() if left_out},
    )
