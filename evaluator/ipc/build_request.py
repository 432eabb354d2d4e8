"""What crosses between an untrusted worker and the trusted builder, and in which bytes.

The encoding is a fixed sequence of length-prefixed fields, little-endian. `decode_*` trusts
nothing: anything malformed, too long or left over is a `ValueError`, and nothing is ever executed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

MAX_TEXT_BYTES = 4 * 2**20
MAX_ITEMS = 1024
MAX_MESSAGE_BYTES = 32 * 2**20
_REQUEST_MAGIC = b"KRQ2"
_OUTCOME_MAGIC = b"KRO1"

Headers = Literal["none", "light", "full"]
_HEADERS: tuple[Headers, ...] = ("none", "light", "full")


@dataclass(frozen=True)
class BuildRequest:
    """One call of `load_inline` (sources) or `load` (files)."""

    name: str
    cpp_sources: tuple[str, ...] = ()
    cuda_sources: tuple[str, ...] = ()
    functions: tuple[tuple[str, str], ...] = ()
    """Name and documentation of each function to bind; empty: the sources bind themselves."""
    cflags: tuple[str, ...] = ()
    cuda_cflags: tuple[str, ...] = ()
    ldflags: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    """Relative name and content of each source file of a `load()`."""
    included: tuple[tuple[str, str], ...] = ()
    """The same of files that sources include."""
    include_folders: tuple[str, ...] = ()
    """Relative names of the folders that are searched for them."""
    with_cuda: bool = False
    implicit_headers: bool = True
    """Whether PyTorch's headers go in front of the inline sources, as `load_inline` does."""


@dataclass(frozen=True)
class BuildOutcome:
    """What the builder made of a request. A failed build is an outcome, never an exception."""

    ok: bool
    library: str
    """Path of the shared library, empty when there is none."""
    module_name: str
    headers: Headers = "none"
    """Which headers the result rests on; `none`: nothing was compiled."""
    cached: bool = False
    seconds: float = 0.0
    log: str = ""
    """The compilers' own output, at most 64 KiB."""
    timed_out: bool = False
    """A compiler was ended for taking too long. Such an outcome is not kept."""


class _Writer:
    def __init__(self, magic: bytes) -> None:
        self.parts = [magic]

    def text(self, value: str) -> None:
        raw = value.encode()
        if len(raw) > MAX_TEXT_BYTES:
            raise ValueError(f"a text of {len(raw)} bytes is longer than {MAX_TEXT_BYTES}")
        self.parts.append(struct.pack("<I", len(raw)) + raw)

    def texts(self, values: tuple[str, ...]) -> None:
        self.count(len(values))
        for value in values:
            self.text(value)

    def pairs(self, values: tuple[tuple[str, str], ...]) -> None:
        self.count(len(values))
        for first, second in values:
            self.text(first)
            self.text(second)

    def count(self, value: int) -> None:
        if value > MAX_ITEMS:
            raise ValueError(f"{value} items are more than {MAX_ITEMS}")
        self.parts.append(struct.pack("<I", value))

    def flag(self, value: bool) -> None:
        self.parts.append(b"\1" if value else b"\0")

    def real(self, value: float) -> None:
        self.parts.append(struct.pack("<d", value))

    def finish(self) -> bytes:
        message = b"".join(self.parts)
        if len(message) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of {len(message)} bytes exceeds {MAX_MESSAGE_BYTES}")
        return message


class _Reader:
    def __init__(self, message: bytes, magic: bytes) -> None:
        if len(message) > MAX_MESSAGE_BYTES:
            raise ValueError("the message is too long")
        if message[: len(magic)] != magic:
            raise ValueError("the message has an unknown format")
        self.message = message
        self.at = len(magic)

    def take(self, size: int) -> bytes:
        if size > len(self.message) - self.at:
            raise ValueError("the message is truncated")
        self.at += size
        return self.message[self.at - size : self.at]

    def number(self, limit: int) -> int:
        value = int.from_bytes(self.take(4), "little")
        if value > limit:
            raise ValueError(f"{value} exceeds the limit of {limit}")
        return value

    def text(self) -> str:
        # A UnicodeDecodeError is a ValueError.
        return self.take(self.number(MAX_TEXT_BYTES)).decode()

    def texts(self) -> tuple[str, ...]:
        return tuple(self.text() for _ in range(self.number(MAX_ITEMS)))

    def pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple((self.text(), self.text()) for _ in range(self.number(MAX_ITEMS)))

    def flag(self) -> bool:
        value = self.take(1)
        if value not in (b"\0", b"\1"):
            raise ValueError("a flag is neither 0 nor 1")
        return value == b"\1"

    def real(self) -> float:
        return float(struct.unpack("<d", self.take(8))[0])

    def finish(self) -> None:
        if self.at != len(self.message):
            raise ValueError("the message is longer than its content")


def encode_request(request: BuildRequest) -> bytes:
    """Bytes of a request. Raises ValueError for one that exceeds the limits."""
    writer = _Writer(_REQUEST_MAGIC)
    writer.text(request.name)
    writer.texts(request.cpp_sources)
    writer.texts(request.cuda_sources)
    writer.pairs(request.functions)
    writer.texts(request.cflags)
    writer.texts(request.cuda_cflags)
    writer.texts(request.ldflags)
    writer.pairs(request.files)
    writer.pairs(request.included)
    writer.texts(request.include_folders)
    writer.flag(request.with_cuda)
    writer.flag(request.implicit_headers)
    return writer.finish()


def decode_request(message: bytes) -> BuildRequest:
    """The request in these bytes. Raises ValueError for anything malformed."""
    reader = _Reader(message, _REQUEST_MAGIC)
    request = BuildRequest(
        name=reader.text(),
        cpp_sources=reader.texts(),
        cuda_sources=reader.texts(),
        functions=reader.pairs(),
        cflags=reader.texts(),
        cuda_cflags=reader.texts(),
        ldflags=reader.texts(),
        files=reader.pairs(),
        included=reader.pairs(),
        include_folders=reader.texts(),
        with_cuda=reader.flag(),
        implicit_headers=reader.flag(),
    )
    reader.finish()
    return request


def encode_outcome(outcome: BuildOutcome) -> bytes:
    """Bytes of an outcome."""
    writer = _Writer(_OUTCOME_MAGIC)
    writer.flag(outcome.ok)
    writer.text(outcome.library)
    writer.text(outcome.module_name)
    writer.text(outcome.headers)
    writer.flag(outcome.cached)
    writer.real(outcome.seconds)
    writer.text(outcome.log)
    writer.flag(outcome.timed_out)
    return writer.finish()


def decode_outcome(message: bytes) -> BuildOutcome:
    """The outcome in these bytes. Raises ValueError for anything malformed."""
    reader = _Reader(message, _OUTCOME_MAGIC)
    ok, library, module_name, headers = reader.flag(), reader.text(), reader.text(), reader.text()
    known = next((known for known in _HEADERS if known == headers), None)
    if known is None:
        raise ValueError("unknown kind of headers")
    outcome = BuildOutcome(
        ok=ok,
        library=library,
        module_name=module_name,
        headers=known,
        cached=reader.flag(),
        seconds=reader.real(),
        log=reader.text(),
        timed_out=reader.flag(),
    )
    reader.finish()
    return outcome
