"""How KernelBench names a kernel's file: level, problem and sample."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_NUMBER = "(0|[1-9][0-9]*)"
"""One spelling for each, so that no two files have the same name."""
_PATTERN = re.compile(rf"level_{_NUMBER}_problem_{_NUMBER}_sample_{_NUMBER}_kernel\.py")


class KernelName(NamedTuple):
    """`level_{level}_problem_{number}_sample_{sample}_kernel.py`; in the order of a folder."""

    level: int
    number: int
    sample: int

    @classmethod
    def of(cls, path: Path) -> KernelName | None:
        match = _PATTERN.fullmatch(path.name)
        return cls(*map(int, match.groups())) if match else None
