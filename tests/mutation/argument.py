"""Why a mutant that was found correct is no wrong program, or why it may pass all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

ARGUMENTS = Path(__file__).parent / "arguments.json"

Class = Literal["same code", "same bytes", "same function", "other inputs", "hole"]


class Argument(BaseModel):
    """A person's judgement on one survivor, beside the evidence that it rests on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    subject: str
    rule: str
    shown: str
    kind: Class
    """`same code`: the compiled libraries are equal. `same bytes`: all outputs were, on fresh and
    adversarial inputs. `same function`: equal in exact arithmetic, and no less exact in fp32.
    `other inputs`: wrong only on inputs that the problem never gives. `hole`: wrong, and missed."""
    evidence: str
    reason: str

    @property
    def equivalent(self) -> bool:
        """Whether it is a right kernel."""
        return self.kind in ("same code", "same bytes", "same function")


def read_arguments(path: Path = ARGUMENTS) -> list[Argument]:
    """All of them."""
    return [Argument.model_validate(entry) for entry in json.loads(path.read_text())]
