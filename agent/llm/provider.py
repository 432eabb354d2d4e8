"""A source of completions that is no language model behind HTTP: offline, replay, relay."""

from __future__ import annotations

import threading
from typing import Protocol

from agent.record.completion import ModelClient


class Provider(Protocol):
    """One of them. `name` is the part of the model's name after the first slash."""

    arguments: frozenset[str]
    """The `--model-args` that it takes."""

    def check(self, name: str) -> None:
        """Raise `UsageError` where `name` can't answer."""
        ...

    def client(self, name: str, stop: threading.Event) -> ModelClient:
        """What answers for `name`; `stop`, once set, ends every wait. Safe to share between
        threads."""
        ...
