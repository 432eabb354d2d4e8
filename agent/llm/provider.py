"""A source of completions that is no language model behind HTTP: offline, replay, relay.

Such a provider is plain code; `agent.llm.library` registers it with LiteLLM, so that every
completion goes the same way. What it needs and a language model must not see (where the answer
belongs, the stop signal) comes to it through a context variable, never through the request.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from agent.record.completion import Message, Tell, Usage, unheard


@dataclass(frozen=True)
class Place:
    """Where the answer that is being asked for belongs, and how long to wait for it."""

    problem: str = ""
    sample: int = 0
    turn: int = 0
    timeout_s: float | None = None
    """The user's `timeout`; None: as long as it takes."""
    stop: threading.Event = field(default_factory=threading.Event)
    tell: Tell = unheard

    def __str__(self) -> str:
        return f"{self.problem}, sample {self.sample}, turn {self.turn}"


PLACE: ContextVar[Place] = ContextVar("place")


@dataclass(frozen=True)
class ProviderAnswer:
    """What a provider of ours answered."""

    text: str
    model: str
    """The model that answered."""
    usage: Usage
    reasoning: str = ""
    finish_reason: str = "stop"


class Provider(Protocol):
    """One provider of ours; `name` is the part of the model's name after the first slash."""

    arguments: frozenset[str]
    """The `--model-args` that it takes."""

    def check(self, name: str) -> None:
        """Raise `UsageError` where `name` can't answer."""
        ...

    def answer(
        self,
        name: str,
        messages: Sequence[Message],
        temperature: float | None,
        seed: int | None,
        place: Place,
    ) -> ProviderAnswer:
        """Answer `messages`. Raises `ModelError`."""
        ...
