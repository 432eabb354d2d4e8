"""Why a mutant that was found correct is no wrong program, or why it may pass all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

ARGUMENTS = Path(__file__).parent / "arguments.json"

Class = Literal[
    "same code",
    "same bytes",
    "same function",
    "as exact",
    "other inputs",
    "within the rule",
    "by chance",
]
EQUIVALENT: tuple[Class, ...] = ("same code", "same bytes", "same function", "as exact")
MEANINGS: dict[Class, str] = {
    "same code": "the compiled libraries are equal, byte for byte",
    "same bytes": "all outputs are equal, byte for byte, on fresh, varied and adversarial inputs",
    "same function": "equal in exact arithmetic, and no less exact in fp32 whatever the inputs are",
    "as exact": "another formula, no further from the fp64 reference than PyTorch is in fp32",
    "other inputs": "wrong, but only on inputs that the problem practically never gives",
    "within the rule": "less exact than the right kernel, but not by as much as the rule allows",
    "by chance": "wrong on some draws only, of inputs, weights or memory, none of which was judged",
}


class Argument(BaseModel):
    """A person's judgement on one survivor, beside the evidence that it rests on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    subject: str
    rule: str
    shown: str
    kind: Class
    evidence: str
    reason: str
    usual: str = ""
    """The verdict with as much timing as users give, where it is no equivalent."""

    @property
    def equivalent(self) -> bool:
        """Whether it is a right kernel after all."""
        return self.kind in EQUIVALENT


def read_arguments(path: Path = ARGUMENTS) -> list[Argument]:
    """All of them."""
    return [Argument.model_validate(entry) for entry in json.loads(path.read_text())]
