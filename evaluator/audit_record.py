"""What a deep audit found. It is reported beside the verdict; few findings change that."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from evaluator.record import Record


class Provenance(StrEnum):
    """In whose code a candidate spends its time. The rule is in `docs/evaluator.md`."""

    CUSTOM = "custom"
    """At least 90 % in kernels of its own."""
    MIXED = "mixed"
    LIBRARY = "library"
    """Less than 10 % in kernels of its own."""
    FALLBACK = "fallback"
    """Like `library`, though it brought kernels or meant to: they failed to build, never ran, or
    the reference's own class does the work."""


class Tool(StrEnum):
    """What looks for errors that a right result does not show."""

    ADDRESS = "address"
    UNDEFINED = "undefined"
    MEMCHECK = "memcheck"
    RACECHECK = "racecheck"
    INITCHECK = "initcheck"
    SYNCCHECK = "synccheck"


class Finding(Record):
    kind: str
    text: str
    file: str = ""
    line: int | None = None
    frames: tuple[str, ...] = ()
    """Innermost first, at most 5, only those within the candidate's sources."""
    refuses: bool = False
    lines: dict[str, str] = Field(default_factory=dict)
    """Lines of the sources as they were compiled that it names, and those around them, by place:
    `main.cpp:12`. Empty where they are not known."""

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        where = f" at {self.place}" if self.place else ""
        return f"{self.kind}{where}: {self.text}" if self.text else f"{self.kind}{where}"


class SanitizerRun(Record):
    tool: Tool
    outcome: Literal["clean", "findings", "inconclusive", "not_run"]
    note: str = ""
    """Why it did not run, or is inconclusive; else at which sizes, if not those shown."""
    findings: tuple[Finding, ...] = ()
    calls: int = 0
    """Of forward, that it watched."""
    seconds: float = 0.0


class Life(StrEnum):
    """What programs do with a module, after which its results must still be right."""

    RESULT_KEPT = "result_kept"
    """A result stays as it is while the module is called again."""
    MOVED = "moved"
    """`.to()`: where it is already, and to another place and back."""
    MODE = "mode"
    """`eval()` and `train()`."""
    STATE_DICT = "state_dict"
    """Its state is loaded into another instance, which gives the same results."""
    INSTANCES = "instances"
    """Another instance with other weights is called between its calls."""


class LifeTrial(Record):
    life: Life
    outcome: Literal["holds", "broken", "not_tried"]
    note: str = ""
    """How it is broken, or why it was not tried."""


class Shares(Record):
    """How the time of forward divides. Median of several calls on a CPU, one call on a GPU."""

    own: float
    library: float
    other: float
    """Neither in own kernels nor in an operator of a library: Python, NumPy, ... (CPU only)."""
    own_names: tuple[str, ...] = ()
    """Own kernels that ran, longest first, at most 8."""
    library_names: tuple[str, ...] = ()
    """Operators or kernels of libraries that ran, longest first, at most 8."""
    imports: tuple[str, ...] = ()
    """Functions of libraries that the built code calls where no trace sees them, at most 8."""


class DeepAudit(Record):
    occasion: Literal["asked", "speedup", "under_bound", "required", "crash"]
    """`speedup`: more than 10x over eager. `under_bound`: faster than the soft bound.
    `required`: for the label alone. `crash`: not correct at all, its process crashed; what is
    found changes nothing."""
    sanitizers: tuple[SanitizerRun, ...] = ()
    life: tuple[LifeTrial, ...] = ()
    """Tried where an audit was asked for. None of these is a verdict."""
    shares: Shares | None = None
    """None where the time could not be traced."""
    seconds: float = 0.0

    @property
    def properties(self) -> tuple[str, ...]:
        return tuple(trial.note for trial in self.life if trial.outcome == "broken")

    @property
    def refusing(self) -> tuple[tuple[Tool, Finding], ...]:
        return tuple(
            (run.tool, finding)
            for run in self.sanitizers
            for finding in run.findings
            if finding.refuses
        )
