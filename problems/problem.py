"""What is to be solved: one PyTorch module in KernelBench's format, read without running it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class SizeClass(StrEnum):
    """Which of the sizes that a problem file declares are in force."""

    CPU = "cpu"
    GPU = "gpu"


class Problem(BaseModel):
    """One problem file; nothing of it has been executed.

    A file defines `Model(nn.Module)`, `get_inputs()` and `get_init_inputs()`. Ours may also say
    `CATEGORY = "..."` and `CPU_SIZES = {"N": 1024, ...}`: the sizes that replace the module-level
    constants of the same names on a CPU. A plain KernelBench file says neither.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    """Safe as a file name and unique in its suite: `level1_19_relu`, or the stem of a lone file."""
    suite: str
    """`refinery` for our own, else the name of the suite's folder."""
    level: int
    """0 for a lone file."""
    name: str
    category: str
    """Empty where the file declares none."""
    path: Path
    source: str
    """The whole file, as it stands on disk."""
    hash: str
    """SHA-256 of `source`, first 16 hex digits."""

    def reference(self, size_class: SizeClass) -> str:
        """The module as the model and the judge see it.

        Sizes are substituted and our metadata (`CATEGORY`, `CPU_SIZES`) is removed; a plain
        KernelBench file comes back unchanged.
        """
        from problems.sizes import with_sizes

        return with_sizes(self.source, size_class)
