"""Which kernels of a call are matrix products and convolutions of a library."""

from __future__ import annotations

import re
from collections.abc import Collection

_PRODUCT = re.compile(
    r"gemm|gemv|fprop|dgrad|wgrad|winograd|implicit|cutlass|nvjet|convolve|fmha|flash"
    r"|^Kernel2$|cublas|splitK|fft[12]d|nchwTo|nhwcTo",
    re.IGNORECASE,
)
"""In the names that cuBLAS, cuDNN and CUTLASS give them, and their transforms and last steps."""


def is_product(name: str, own: Collection[str]) -> bool:
    """Whether a kernel multiplies matrices, to judge by its name; `own`: the candidate's kernels,
    which count for nothing here."""
    return name not in own and _PRODUCT.search(name) is not None
