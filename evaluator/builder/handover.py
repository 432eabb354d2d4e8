"""Hands a library's content from the builder on: it may leave the cache meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from evaluator.errors import BuilderError
from evaluator.ipc.build_request import BuildOutcome, BuildRequest

Build = Callable[[BuildRequest], BuildOutcome]
_ATTEMPTS = 3

Read = TypeVar("Read")


def built_and_read(
    build: Build, request: BuildRequest, read: Callable[[Path], Read]
) -> tuple[BuildOutcome, Read | None]:
    """The outcome, and what `read` made of its library; None where there is none.

    It is built again where another process made room in the cache before it was read.
    """
    for _ in range(_ATTEMPTS):
        outcome = build(request)
        if not outcome.ok:
            return outcome, None
        with suppress(FileNotFoundError):
            return outcome, read(Path(outcome.library))
    raise BuilderError(f"{request.name} left the build cache {_ATTEMPTS} times before it was read")
