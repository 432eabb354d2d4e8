"""The tools of a session, as an agent sees them: what each does, what it takes, what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_CHARACTERS = 1_000_000
"""Of a source."""
MOST_CALLS = 64
"""Of a tool, at a time."""


@dataclass(frozen=True)
class Answer:
    text: str
    kind: Literal["done", "refused", "failed"] = "done"
    """refused: the agent asked for what can't be. failed: our side broke. Neither is charged."""


def _not_empty(source: str) -> str:
    if not source.strip():
        raise ValueError("it is empty")
    return source


class Tool(BaseModel):
    """What a tool takes. The docstrings are what an agent reads."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class OfProblem(Tool):
    problem: str = Field(default="", max_length=200)
    """Its id, as list gives it. May be left out where the session has one problem."""


class ListTool(Tool):
    """List the problems, and what is left of each budget."""


class ReadTool(OfProblem):
    """Read a problem: the PyTorch module to replace, what counts, the device, and what is known of
    the kernels so far. Costs nothing."""


class EvaluateTool(OfProblem):
    """Have a kernel built, checked and timed. Costs one evaluation and device time. The same source
    again gets the same answer and costs nothing. Takes seconds to minutes."""

    source: Annotated[str, Field(max_length=MOST_CHARACTERS), AfterValidator(_not_empty)]
    """The whole Python file, which defines ModelNew. Its first line may be a comment `# plan: `
    that says what this version does."""
    prompt_tokens: int | None = Field(default=None, ge=0, le=10**12)
    """The tokens that you read since the last evaluation, if you know it."""
    completion_tokens: int | None = Field(default=None, ge=0, le=10**12)
    """The tokens that you wrote since then, if you know it."""


class ProfileTool(OfProblem):
    """Have a correct kernel profiled: where its time goes, and what to change. Costs one profile
    and device time; nothing where it was profiled before."""

    turn: int | None = Field(default=None, ge=0)
    """The turn whose kernel is profiled. Left out: the kernel to refine."""


class StatusTool(OfProblem):
    """Say what a problem has come to, or all of them, and what is left of its budget."""


class FinishTool(OfProblem):
    """End a problem: its best kernel is judged a second time, in fresh processes, and you get the
    path of its file. Nothing more is evaluated afterwards. Takes minutes; ask again where you
    waited in vain: nothing is judged twice."""


TOOLS: dict[str, type[Tool]] = {
    "list": ListTool,
    "read": ReadTool,
    "evaluate": EvaluateTool,
    "profile": ProfileTool,
    "status": StatusTool,
    "finish": FinishTool,
}
