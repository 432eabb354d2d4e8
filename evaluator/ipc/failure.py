"""What a worker says when candidate code raised: text for the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from evaluator.ipc.build_request import Encoded

Phase = Literal["import", "construct", "call"]
_TEXT_BYTES = 16384
_NAME_BYTES = 256


@dataclass(frozen=True)
class Failure(Encoded):
    """An exception that left candidate code. Nothing rests on it but the words shown."""

    magic = b"KRF1"

    phase: Phase
    error: str
    """Class of the exception."""
    summary: str
    trace: str
    """Frames in the candidate's file, or the last ones."""

    def encode(self) -> bytes:
        shortened = replace(
            self,
            error=_shortened(self.error, _NAME_BYTES),
            summary=_shortened(self.summary, _TEXT_BYTES),
            trace=_shortened(self.trace, _TEXT_BYTES),
        )
        return super(Failure, shortened).encode()


def no_class(name: str, others: Sequence[str]) -> str:
    """What a file lacks; `others`: modules that it defines."""
    rename = f"; it defines {', '.join(others)}: rename what is to be judged" if others else ""
    return f"the file defines no class {name}{rename}"


def _shortened(text: str, limit: int) -> str:
    data = text.encode(errors="replace")
    if len(data) > limit:
        half = limit // 2 - 8
        data = data[:half] + b"\n[...]\n" + data[-half:]
    return data.decode(errors="replace")
