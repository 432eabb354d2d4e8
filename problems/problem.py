"""What is to be solved: one PyTorch module in KernelBench's format, read without running it."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from problems.sizes import SizeClass, count_hidden_sizes, with_sizes


class Problem(BaseModel):
    """One problem file; nothing of it has been executed.

    A file defines `Model(nn.Module)`, `get_inputs()` and `get_init_inputs()`. Ours may also say
    `CATEGORY = "..."` and `CPU_SIZES = {"N": 1024, ...}`: the sizes that replace the module-level
    constants of the same names on a CPU; and `HIDDEN_SIZES = [{"N": 37, ...}, ...]`: sizes at
    which a kernel must be right as well, and which its author doesn't see. A plain KernelBench file
    says nothing of this.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    """Safe as a file name and unique in its suite: `level1_19_relu`, or the stem of a lone file."""
    suite: str
    """`refinery` for our own, else the name of the suite's folder or data set, with the revision
    that was asked for; `hash` says which text it had."""
    level: int
    """0 for a lone file."""
    name: str
    category: str
    """Declared by the file, else derived from its operators (`problems.category`); may be empty."""
    path: Path
    """Of a data set's problem: a copy in the cache."""
    source: str
    """The whole file."""
    hash: str
    """SHA-256 of `source`, first 16 hex digits."""

    def reference(self, size_class: SizeClass) -> str:
        """The module as the model and the judge see it.

        Sizes are substituted and our metadata (`CATEGORY`, `CPU_SIZES`, `HIDDEN_SIZES`) is removed;
        a plain KernelBench file comes back unchanged.
        """
        return with_sizes(self.source, size_class)

    @property
    def has_hidden_sizes(self) -> bool:
        return count_hidden_sizes(self.source) > 0

    def hidden_references(self, size_class: SizeClass) -> tuple[str, ...]:
        return tuple(
            with_sizes(self.source, size_class, hidden=number)
            for number in range(count_hidden_sizes(self.source))
        )
