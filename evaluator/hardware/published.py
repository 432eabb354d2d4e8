"""What makers publish about their GPUs: peaks, and sizes by compute capability.

Sources: NVIDIA's data sheets and architecture white papers of each product. Rates are dense (no
structured sparsity), at boost clock, so nothing honest is faster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

KIB = 1024
MIB = 1024**2


@dataclass(frozen=True)
class Published:
    name: str
    pattern: str
    """Matched, ignoring case, against the name that the driver or a person gives."""
    l2_bytes: int
    bandwidth_bytes_s: float
    tflops: dict[str, float]

    @property
    def flops(self) -> dict[str, float]:
        """Operations a second by arithmetic: float64, float32, tfloat32, float16, ..."""
        return {kind: rate * 1e12 for kind, rate in self.tflops.items()}


SHARED_MEMORY: dict[tuple[int, int], tuple[int, int]] = {
    (7, 5): (64 * KIB, 64 * KIB),
    (8, 0): (164 * KIB, 163 * KIB),
    (8, 6): (100 * KIB, 99 * KIB),
    (8, 9): (100 * KIB, 99 * KIB),
    (9, 0): (228 * KIB, 227 * KIB),
    (10, 0): (228 * KIB, 227 * KIB),
    (10, 3): (228 * KIB, 227 * KIB),
    (12, 0): (100 * KIB, 99 * KIB),
}
"""Most shared memory by compute capability: an SM, a block (CUDA programming guide)."""
THREADS_PER_SM: dict[tuple[int, int], int] = {
    (7, 5): 1024,
    (8, 6): 1536,
    (8, 9): 1536,
    (12, 0): 1536,
}
"""2048 elsewhere."""
CORES_PER_SM: dict[tuple[int, int], int] = {(7, 5): 64, (8, 0): 64}
"""128 elsewhere."""
REGISTERS_PER_SM = 65536

_HOPPER = {
    "float64": 34.0,
    "float32": 67.0,
    "tfloat32": 494.7,
    "float16": 989.4,
    "bfloat16": 989.4,
    "float8": 1978.9,
}
_HOPPER_NVL = {
    "float64": 30.0,
    "float32": 60.0,
    "tfloat32": 417.5,
    "float16": 835.5,
    "bfloat16": 835.5,
    "float8": 1670.5,
}
_AMPERE = {"float64": 9.7, "float32": 19.5, "tfloat32": 156.0, "float16": 312.0, "bfloat16": 312.0}

TABLE: tuple[Published, ...] = (
    # The more specific pattern comes first.
    Published("GH200", r"GH200", 50 * MIB, 4.9e12, _HOPPER),
    Published("H200 NVL", r"H200.*NVL", 50 * MIB, 4.8e12, _HOPPER_NVL),
    Published("H200", r"H200", 50 * MIB, 4.8e12, _HOPPER),
    Published("H100 NVL", r"H100.*NVL", 50 * MIB, 3.94e12, _HOPPER_NVL),
    Published(
        "H100 PCIe", r"H100.*PCIe", 50 * MIB, 2.04e12,
        {
            "float64": 25.6, "float32": 51.2, "tfloat32": 378.0, "float16": 756.0,
            "bfloat16": 756.0, "float8": 1513.0,
        },
    ),
    Published("H100", r"H100", 50 * MIB, 3.36e12, _HOPPER),
    Published(
        "B200", r"G?B200", 126 * MIB, 8.0e12,
        {
            "float64": 40.0, "float32": 80.0, "tfloat32": 1250.0, "float16": 2500.0,
            "bfloat16": 2500.0, "float8": 5000.0,
        },
    ),
    Published("A100 80GB", r"A100.*80\s?GB", 40 * MIB, 2.04e12, _AMPERE),
    Published("A100 40GB", r"A100", 40 * MIB, 1.56e12, _AMPERE),
    Published(
        "L40S", r"L40S", 96 * MIB, 0.864e12,
        {"float32": 91.6, "tfloat32": 183.2, "float16": 362.1, "bfloat16": 362.1, "float8": 733.0},
    ),
    Published(
        "L4", r"\bL4\b", 48 * MIB, 0.3e12,
        {"float32": 30.3, "tfloat32": 60.5, "float16": 121.0, "bfloat16": 121.0, "float8": 242.5},
    ),
    Published("T4", r"\bT4\b", 4 * MIB, 0.32e12, {"float32": 8.1, "float16": 65.0}),
    Published(
        "A10G", r"\bA10G\b", 6 * MIB, 0.6e12,
        {"float32": 35.0, "tfloat32": 35.0, "float16": 70.0, "bfloat16": 70.0},
    ),
    Published(
        "A10", r"\bA10\b", 6 * MIB, 0.6e12,
        {"float32": 31.2, "tfloat32": 62.5, "float16": 125.0, "bfloat16": 125.0},
    ),
    Published(
        "RTX 4090", r"RTX\s?4090", 72 * MIB, 1.008e12,
        {"float32": 82.6, "tfloat32": 82.6, "float16": 330.3, "bfloat16": 165.2, "float8": 660.6},
    ),
    Published(
        "RTX 3090", r"RTX\s?3090", 6 * MIB, 1.008e12,
        {"float32": 40.0, "tfloat32": 40.0, "float16": 160.0, "bfloat16": 80.0},
    ),
)  # fmt: skip


def published(name: str) -> Published | None:
    """None for CPUs and products that are not in the table."""
    spaced = re.sub(r"[-_]+", " ", name)
    for product in TABLE:
        if re.search(product.pattern, spaced, re.IGNORECASE):
            return product
    return None
