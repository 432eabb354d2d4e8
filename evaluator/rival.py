"""What a problem's kernels have to beat: PyTorch itself on the same device."""

from __future__ import annotations

from typing import Literal

from evaluator.evaluation import ProblemRequest, Rates
from evaluator.record import Record

_SHOWN = 5
_LEAST_SHARE = 0.02


class CheckRequest(ProblemRequest):
    """Asks the judge whether a problem can be judged, and what PyTorch reaches."""

    rival: Literal["none", "eager", "compile"] = "none"
    """What is timed; `compile`: eager as well."""


class RivalKernel(Record):
    """One kernel (on a CPU: one operator) of an eager call, launches of one name together."""

    name: str
    launches: int
    time_us: float
    share: float
    """Of the device time of the call, 0 to 1."""


class Rival(Record):
    """`rivals/<problem>.json`. A figure is None where it was not asked for or cannot be had."""

    eager_us: float | None = None
    flags: str = ""
    """The arithmetic that eager was allowed."""
    compile_us: float | None = None
    """Of `torch.compile` with its defaults."""
    bound_us: float | None = None
    """The soft bound of the speed of light."""
    bound_rates: Rates | None = None
    attainable_us: float | None = None
    """At the rates that PyTorch's own copies and products reach on the device."""
    kernels: tuple[RivalKernel, ...] = ()
    """Of an eager call, the longest first."""
    strides: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Of outputs that do not lie row by row, by number: others are copied in the timed call."""
    notes: tuple[str, ...] = ()
    """Why something is missing."""
    needed_bytes: int = 0
    """Of the device's memory, by the judge and its workers."""
    measured_at: str = ""

    @property
    def times_us(self) -> dict[str, float]:
        times = {"eager": self.eager_us, "torch.compile": self.compile_us}
        return {name: us for name, us in times.items() if us is not None}

    @property
    def longest(self) -> tuple[RivalKernel, ...]:
        return tuple(k for k in self.kernels[:_SHOWN] if k.share >= _LEAST_SHARE)
