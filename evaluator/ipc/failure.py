"""What a worker says when candidate code raised: text for the model, in a fixed binary layout."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

Phase = Literal["import", "construct", "call"]
_PHASES: tuple[Phase, ...] = ("import", "construct", "call")
_HEAD = struct.Struct("<BIII")
_SUMMARY_BYTES = 16384
_TRACE_BYTES = 16384
_NAME_BYTES = 256


@dataclass(frozen=True)
class Failure:
    """An exception that left candidate code. Nothing rests on it but the words shown."""

    phase: Phase
    error: str
    """Class of the exception."""
    summary: str
    trace: str
    """Frames in the candidate's file, or the last ones."""

    def encode(self) -> bytes:
        texts = [
            _shortened(self.error, _NAME_BYTES),
            _shortened(self.summary, _SUMMARY_BYTES),
            _shortened(self.trace, _TRACE_BYTES),
        ]
        head = _HEAD.pack(_PHASES.index(self.phase), *(len(text) for text in texts))
        return head + b"".join(texts)

    @classmethod
    def decode(cls, data: bytes) -> Failure:
        """From bytes that are not trusted; raises `ValueError` on anything malformed."""
        try:
            code, *lengths = _HEAD.unpack_from(data)
        except struct.error as error:
            raise ValueError(str(error)) from None
        if code >= len(_PHASES) or _HEAD.size + sum(lengths) != len(data):
            raise ValueError("lengths do not add up")
        texts = []
        position = _HEAD.size
        for length in lengths:
            texts.append(data[position : position + length].decode(errors="replace"))
            position += length
        return cls(_PHASES[code], *texts)


def _shortened(text: str, limit: int) -> bytes:
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return data
    half = limit // 2 - 8
    return data[:half] + b"\n[...]\n" + data[-half:]
