"""What a worker says of one call: where its outputs lie and three times. Fixed binary layout."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
)
"""Names of the dtypes that may cross, by code."""
GATE_BYTES = 256
"""At the end of a GPU's slot for outputs, in 32-bit words: a worker's stream is held while the
first is 0, and the second becomes 1 when the call is done."""
_ALIGNMENT = 256
"""Of each output in the slot, in bytes."""
MAX_DIMS = 8
MAX_OUTPUTS = 64
_MOST = 2**48
"""Elements of an output, and each number of its shape and strides."""
_HEAD = struct.Struct("<IIddQQ")
_OUTPUT = struct.Struct("<BBQ")


@dataclass(frozen=True)
class OutputLayout:
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    """In elements, none negative."""
    place: int
    """Its first byte: an address in the worker, or an offset in the slot for outputs."""


@dataclass(frozen=True)
class Sources:
    """Where a call's outputs lay before they were copied, on a GPU into the slot: a claim."""

    outputs: tuple[OutputLayout, ...]
    """By their addresses."""
    inputs: tuple[int, int]
    """On a GPU, first address and end of the memory of the inputs."""


@dataclass(frozen=True)
class Reply:
    """The worker's claim about one call.

    `forward_us` and `total_us` are device times on a GPU, zero on a CPU, and only claims: the judge
    bounds them by its own clock. The outputs' bytes are what counts.
    """

    outputs: tuple[OutputLayout, ...]
    forward_us: float = 0.0
    total_us: float = 0.0
    sources: Sources | None = None

    def encode(self) -> bytes:
        sources = self.sources or Sources((), (0, 0))
        counts = len(self.outputs), len(sources.outputs)
        head = _HEAD.pack(*counts, self.forward_us, self.total_us, *sources.inputs)
        return b"".join([head, *map(_encoded, self.outputs), *map(_encoded, sources.outputs)])

    @classmethod
    def decode(cls, data: bytes) -> Reply:
        """From bytes that are not trusted; raises `ValueError` on anything malformed."""
        try:
            count, before, forward_us, total_us, *inputs = _HEAD.unpack_from(data)
            position = _HEAD.size
            if max(count, before) > MAX_OUTPUTS:
                raise ValueError(f"{count} outputs")
            outputs = []
            for _ in range(count + before):
                output, position = _decoded(data, position)
                outputs.append(output)
        except struct.error as error:
            raise ValueError(str(error)) from None
        if position != len(data):
            raise ValueError("bytes left over")
        if not (0.0 <= forward_us < 1e12 and 0.0 <= total_us < 1e12):
            raise ValueError("times out of range")
        first, end = inputs
        sources = Sources(tuple(outputs[count:]), (first, end)) if before else None
        return cls(tuple(outputs[:count]), forward_us, total_us, sources)


def place_after(end: int) -> int:
    return (end + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


def _encoded(output: OutputLayout) -> bytes:
    dims = len(output.shape)
    head = _OUTPUT.pack(DTYPES.index(output.dtype), dims, output.place)
    return head + struct.pack(f"<{2 * dims}q", *output.shape, *output.stride)


def _decoded(data: bytes, position: int) -> tuple[OutputLayout, int]:
    """One output, and where the next begins; raises `ValueError` or `struct.error`."""
    code, dims, place = _OUTPUT.unpack_from(data, position)
    position += _OUTPUT.size
    if code >= len(DTYPES) or dims > MAX_DIMS:
        raise ValueError(f"dtype {code}, {dims} dimensions")
    numbers = struct.unpack_from(f"<{2 * dims}q", data, position)
    # PyTorch counts with sizes of 0 as well.
    elements = math.prod(max(size, 1) for size in numbers[:dims])
    # The judge adds strides to the place: at the end of all addresses it would come to null.
    if place >> 63 or any(number < 0 or number > _MOST for number in (*numbers, elements)):
        raise ValueError(f"shape and stride {numbers} at {place:#x}")
    layout = OutputLayout(DTYPES[code], numbers[:dims], numbers[dims:], place)
    return layout, position + 16 * dims
