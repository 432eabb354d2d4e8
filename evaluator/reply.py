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
"""At the end of a GPU's slot for outputs: a worker's stream is held while they begin with 0."""
MAX_DIMS = 8
MAX_OUTPUTS = 64
_MOST = 2**48
"""Elements of an output, and each number of its shape and strides."""
_HEAD = struct.Struct("<Iddd")
_OUTPUT = struct.Struct("<BBQ")


@dataclass(frozen=True)
class OutputLayout:
    """One output: where it begins, and how it goes on from there."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    """In elements, none negative."""
    place: int
    """Its first byte: an address in the worker, or an offset in the slot for outputs."""


@dataclass(frozen=True)
class Reply:
    """The worker's claim about one call.

    `forward_us` and `total_us` are device times on a GPU, zero on a CPU, and only claims: the judge
    bounds them by its own clock. The outputs' bytes are what counts.
    """

    outputs: tuple[OutputLayout, ...]
    forward_us: float = 0.0
    total_us: float = 0.0

    def encode(self) -> bytes:
        """As bytes."""
        parts = [_HEAD.pack(len(self.outputs), self.forward_us, self.total_us, 0.0)]
        for output in self.outputs:
            dims = len(output.shape)
            parts.append(_OUTPUT.pack(DTYPES.index(output.dtype), dims, output.place))
            parts.append(struct.pack(f"<{2 * dims}q", *output.shape, *output.stride))
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> Reply:
        """From bytes that are not trusted; raises `ValueError` on anything malformed."""
        try:
            count, forward_us, total_us, _ = _HEAD.unpack_from(data)
            position = _HEAD.size
            if count > MAX_OUTPUTS:
                raise ValueError(f"{count} outputs")
            outputs = []
            for _ in range(count):
                code, dims, place = _OUTPUT.unpack_from(data, position)
                position += _OUTPUT.size
                if code >= len(DTYPES) or dims > MAX_DIMS:
                    raise ValueError(f"dtype {code}, {dims} dimensions")
                numbers = struct.unpack_from(f"<{2 * dims}q", data, position)
                position += 16 * dims
                # PyTorch counts with sizes of 0 as well.
                elements = math.prod(max(size, 1) for size in numbers[:dims])
                if any(number < 0 or number > _MOST for number in (*numbers, elements)):
                    raise ValueError(f"shape and stride {numbers}")
                outputs.append(OutputLayout(DTYPES[code], numbers[:dims], numbers[dims:], place))
        except struct.error as error:
            raise ValueError(str(error)) from None
        if position != len(data):
            raise ValueError("bytes left over")
        if not (0.0 <= forward_us < 1e12 and 0.0 <= total_us < 1e12):
            raise ValueError("times out of range")
        return cls(tuple(outputs), forward_us, total_us)
