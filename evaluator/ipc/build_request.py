"""What crosses between an untrusted worker and the trusted builder, and in which bytes.

The encoding is a fixed sequence of length-prefixed fields, little-endian. `decode` trusts nothing:
anything malformed, too long or left over is a `ValueError`, and nothing is ever executed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

MAX_TEXT_BYTES = 4 * 2**20
MAX_ITEMS = 1024
MAX_MESSAGE_BYTES = 32 * 2**20

Headers = Literal["none", "light", "full"]


class Encoded:
    """A dataclass of flags, numbers, texts, tuples of texts and tuples of pairs of texts."""

    magic: ClassVar[bytes]

    def encode(self) -> bytes:
        """Raises ValueError for what exceeds the limits."""
        message = self.magic + b"".join(map(_bytes_of, vars(self).values()))
        if len(message) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of {len(message)} bytes exceeds {MAX_MESSAGE_BYTES}")
        return message

    @classmethod
    def decode(cls, message: bytes) -> Self:
        """Raises ValueError for anything malformed."""
        reader = _Reader(message, cls.magic)
        kinds = get_type_hints(cls)
        del kinds["magic"]
        values = {name: reader.value(kind) for name, kind in kinds.items()}
        if reader.at != len(message):
            raise ValueError("the message is longer than its content")
        return cls(**values)


@dataclass(frozen=True)
class BuildRequest(Encoded):
    """One call of `load_inline` (sources) or `load` (files)."""

    magic = b"KRQ3"

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
class BuildOutcome(Encoded):
    """What the builder made of a request. A failed build is an outcome, never an exception."""

    magic = b"KRO3"

    ok: bool
    library: str
    """Path of the shared library, empty when there is none."""
    headers: Headers = "none"
    """Which headers the result rests on; `none`: nothing was compiled."""
    cached: bool = False
    seconds: float = 0.0
    log: str = ""
    """The compilers' own output, at most 64 KiB."""
    timed_out: bool = False
    """A compiler was ended for taking too long. Such an outcome is not kept."""


def _bytes_of(value: object) -> bytes:
    match value:
        case bool():
            return b"\1" if value else b"\0"
        case float():
            return struct.pack("<d", value)
        case str():
            raw = value.encode()
            if len(raw) > MAX_TEXT_BYTES:
                raise ValueError(f"a text of {len(raw)} bytes is longer than {MAX_TEXT_BYTES}")
            return struct.pack("<I", len(raw)) + raw
        case tuple():
            if len(value) > MAX_ITEMS:
                raise ValueError(f"{len(value)} items are more than {MAX_ITEMS}")
            return struct.pack("<I", len(value)) + b"".join(map(_bytes_of, value))
    raise TypeError(f"a {type(value).__name__} cannot cross")


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

    def value(self, kind: Any) -> Any:
        """The next field, of the type that `Encoded` declares."""
        if get_origin(kind) is Literal:
            text = self.text()
            if text not in get_args(kind):
                raise ValueError(f"{text!r} is none of {get_args(kind)}")
            return text
        if get_origin(kind) is tuple:
            item, *others = get_args(kind)
            count = self.number(MAX_ITEMS)
            if others != [...] and count != 1 + len(others):
                raise ValueError(f"a tuple of {count}")
            return tuple(self.value(item) for _ in range(count))
        if kind is float:
            return struct.unpack("<d", self.take(8))[0]
        if kind is str:
            return self.text()
        flag = self.take(1)
        if flag not in (b"\0", b"\1"):
            raise ValueError("a flag is neither 0 nor 1")
        return flag == b"\1"

    def text(self) -> str:
        # A UnicodeDecodeError is a ValueError.
        return self.take(self.number(MAX_TEXT_BYTES)).decode()
