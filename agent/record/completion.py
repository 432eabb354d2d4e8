"""One question to a model and its answer, as they are stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal, Protocol, Self

from pydantic import Field

from evaluator.record import Record


class Message(Record):
    role: Literal["system", "user"]
    content: str


class CompletionRequest(Record):
    """Everything that decides an answer. Its canonical JSON is the key of a stored completion."""

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


class Sum(Record):
    """Figures that add up field by field; one that is unknown (None) makes its sum unknown."""

    def __add__(self, other: Self) -> Self:
        pairs = {
            name: (getattr(self, name), getattr(other, name)) for name in type(self).model_fields
        }
        return type(self)(
            **{k: None if None in pair else pair[0] + pair[1] for k, pair in pairs.items()}
        )


class Usage(Sum):
    prompt_tokens: int | None = 0
    """Like the next three: None where nobody counted."""
    completion_tokens: int | None = 0
    reasoning_tokens: int | None = 0
    cached_tokens: int | None = 0
    cost_usd: float | None = None
    """None: the price is unknown. 0.0 only for what is known to be free."""


class Completion(Record):
    """A model's answer. Stored before anything is done with it."""

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
    """A `Tell` that ignores what it is given."""


class ModelClient(Protocol):
    def complete(
        self, request: CompletionRequest, tell: Tell = unheard, so_far: Tell = unheard
    ) -> Completion:
        """Answer `request`; raises `agent.llm.failure.ModelError` when the provider can't.

        `tell` is called before each wait with the reason for it. `so_far` gets the whole text so
        far while the answer streams, and nothing where the answer comes at once. What it gets may
        belong to an attempt that fails.
        """
        ...


CHARACTERS_PER_TOKEN = 4
"""A common rule of thumb for English and code; right within about a third."""


def estimated_tokens(texts: Iterable[str]) -> int:
    """Tokens by rule of thumb: characters / 4, rounded up. Never a basis for a bill."""
    return -(-sum(map(len, texts)) // CHARACTERS_PER_TOKEN)


_TAG = re.compile(r"\s*<(think|thinking|reasoning)>")


def apart(text: str) -> tuple[str, str]:
    """(answer, reasoning). Only what stands before the answer counts: a tag in the midst of it is
    part of it. Reasoning that never ends was cut off, and leaves no answer; an end without a
    beginning comes from chat templates that send the opening tag themselves."""
    opening = _TAG.match(text)
    if opening:
        thought, _, answer = text[opening.end() :].partition(f"</{opening.group(1)}>")
        return answer.lstrip("\n"), thought.strip()
    thought, end, answer = text.partition("</think>")
    if end and "<think>" not in thought and answer.strip() and "```" not in thought:
        return answer.lstrip("\n"), thought.strip()
    return text, ""
