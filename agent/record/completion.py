"""One question to a model and its answer, as they are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field


class Message(BaseModel):
    """One chat message."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["system", "user"]
    content: str


class CompletionRequest(BaseModel):
    """Everything that decides an answer. Its canonical JSON is the key of a stored completion."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str
    """LiteLLM's name: `provider/model`."""
    messages: tuple[Message, ...]
    temperature: float | None = None
    seed: int | None = None
    arguments: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    """`--model-args`: api_base, top_p, max_tokens, reasoning_effort, ..."""
    problem: str = ""
    sample: int = 0
    turn: int = 0
    """Where the answer belongs (not sent to a language model; `replay/` answers by it)."""


class Usage(BaseModel):
    """What one answer was billed."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    """None: the price is unknown. 0.0 only for what is known to be free."""

    def __add__(self, other: Usage) -> Usage:
        """Both together; an unknown price makes the sum unknown."""
        costs = (self.cost_usd, other.cost_usd)
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        )


class Completion(BaseModel):
    """A model's answer. Stored before anything is done with it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    text: str
    reasoning: str = ""
    finish_reason: str = "stop"
    model_asked: str
    model_answered: str
    usage: Usage
    seconds: float
    attempts: int = 1
    """Requests sent until this answer came, refused ones included."""


Tell = Callable[[str], None]
"""Takes one line about what an answer is waiting for, or the text of an answer so far."""


def unheard(text: str) -> None:
    """A `Tell` where nobody watches."""


class ModelClient(Protocol):
    """Where completions come from."""

    def complete(
        self, request: CompletionRequest, tell: Tell = unheard, so_far: Tell = unheard
    ) -> Completion:
        """Answer `request`; raises `agent.llm.errors.ModelError` when the provider can't.

        `tell` hears of every wait that somebody may want to know about, before it begins. `so_far`
        hears the answer's text while it is written, each time all of it; nothing where the answer
        comes whole. What it hears may belong to an attempt that fails.
        """
        ...
