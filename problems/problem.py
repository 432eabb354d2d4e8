"""What is to be solved: one PyTorch module in KernelBench's format, read without running it."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from problems.case import Case, cases_of
from problems.sizes import SizeClass, count_hidden_sizes, with_sizes


class Problem(BaseModel):
    """One problem file; nothing of it has been executed.

    A file defines `Model(nn.Module)`, `get_inputs()` and `get_init_inputs()`. Ours may also say
    `CATEGORY = "..."` and `CPU_SIZES = {"N": 1024, ...}`: the sizes that replace the module-level
    constants of the same names on a CPU; and `HIDDEN_SIZES = [{"N": 37, ...}, ...]`: sizes at
    which a kernel must be right as well, and which its author doesn't see; and `CASES = [{"N": 64,
    "weight": 0.9}, ...]`: the sizes that are served, each of which is verified and timed. A plain
    KernelBench file says nothing of this.
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
    weights: Path | None = None
    """`NAME.safetensors` beside `NAME.py`: what a user has trained, in no prompt. None: no file."""
    hash: str
    """SHA-256 of `source`, and of `weights` where there are some; first 16 hex digits."""

    def reference(self, size_class: SizeClass) -> str:
        """The module as the model and the judge see it.

        Sizes are substituted, with cases those of the heaviest, and our metadata (`CATEGORY`,
        `CPU_SIZES`, `HIDDEN_SIZES`, `CASES`) is removed; a plain KernelBench file comes back
        unchanged.
        """
        cases = self.case_references(size_class)
        return cases[0] if cases else with_sizes(self.source, size_class)

    def cases(self, size_class: SizeClass) -> tuple[Case, ...]:
        """The heaviest first; none in a plain KernelBench file."""
        return cases_of(self.source, size_class)

    def case_references(self, size_class: SizeClass) -> tuple[str, ...]:
        """In the order of `cases`, which is that of `Evaluation.cases`."""
        return tuple(case.reference for case in self.cases(size_class))

    @property
    def has_hidden_sizes(self) -> bool:
        return count_hidden_sizes(self.source) > 0

    def hidden_references(self, size_class: SizeClass) -> tuple[str, ...]:
        return tuple(
            with_sizes(self.source, size_class, hidden=number)
            for number in range(count_hidden_sizes(self.source))
        )
