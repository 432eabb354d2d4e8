"""What the collectors bring home from one forward call: raw facts, no judgement.

These records cross from the process that ran the candidate to the one that digests them. That
process was at the candidate's mercy, so nothing in them may reach a verdict.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from evaluator.record import Record


def _on_one_line(name: str) -> str:
    """Without what would steer a terminal, or begin another line or column of a prompt."""
    return "".join(sign if sign.isprintable() and sign != "|" else " " for sign in name)


Name = Annotated[str, AfterValidator(_on_one_line)]


class SourceLine(Record):
    file: Name
    """As it was compiled, without folders."""
    line: int
    """Of the instruction that is waited for, where that is known; else of the one that waits."""
    share: float
    """Of all samples of waiting warps, 0 to 1; each counts for one line."""
    reason: Name
    """What most of them waited for, by the names of `ncu_metrics.QUANTITIES`."""
    producer: Name = ""
    """What kind of instruction they waited for, in words; empty where that is not known."""
    called_at: int | None = None
    """The kernel's line into which it was inlined, where that is another one."""
    used_at: int | None = None
    """The line at which most of them waited, where that is neither of these."""


class CollectedKernel(Record):
    name: Name
    """Without template arguments and parameters."""
    launches: int
    time_us: float
    """Device time of all launches together; 0 where the tool gave no time."""
    durations_us: tuple[float, ...] = ()
    """Of each launch, in their order, by a trace."""
    metrics: dict[str, float | None] = Field(default_factory=dict)
    """By the names of `ncu_metrics.QUANTITIES`; None where the tool gave no value."""
    lines: tuple[SourceLine, ...] = ()
    """Where most time was lost, the worst first; empty where that is not known."""


class KernelTrace(Record):
    kernels: tuple[CollectedKernel, ...]
    """The slowest first; of a trace without counters, memsets and copies among them."""
    span_us: float | None = None
    """From the first kernel's start to the last one's end; None under a replaying profiler."""
    missing: tuple[str, ...] = ()
    """Quantities that this chip or this tool does not know."""

    @property
    def busy_us(self) -> float:
        return sum(kernel.time_us for kernel in self.kernels)

    @property
    def launches(self) -> int:
        return sum(kernel.launches for kernel in self.kernels)

    def own(self, source: str) -> tuple[CollectedKernel, ...]:
        """The kernels that the candidate's file names: those of libraries live in namespaces."""
        words = set(re.findall(r"[A-Za-z_]\w*", source))
        return tuple(kernel for kernel in self.kernels if kernel.name in words)


class DeviceTimeline(Record):
    """What the device did in one forward call, by a trace without counters."""

    kernels: int
    """Launches."""
    kernels_us: float
    others: tuple[CollectedKernel, ...] = ()
    """Memsets and copies, by name."""
    span_us: float
    """From the start of the first of all these to the end of the last."""
    gaps_us: float
    """Of that, the time in which none of them ran."""
    host_call: str = ""
    """The function of CUDA in which the host spent most of the gaps, and how long."""
    host_call_us: float = 0.0


class CollectedOperator(Record):
    """All calls of one operator, or of one of the candidate's own functions, on a CPU."""

    name: Name
    own: bool
    calls: int
    time_us: float
    """Time in it, without what it called in turn."""
    allocated_bytes: int = 0
    """Memory that it asked for, of all calls together."""


class ProfiledCall(Record):
    wall_us: float
    """Under the profiler, from outside."""
    operators: tuple[CollectedOperator, ...]


class LoopFacts(Record):
    packed: int
    """Those that work on several elements at once."""
    scalar: int
    widest_bits: int
    """Width of the widest registers that packed instructions used: 0, 128, 256 or 512."""
    calls: tuple[str, ...] = ()
    """Functions of the mathematical library that are called element by element in such loops."""


class CpuTrace(Record):
    operators: tuple[CollectedOperator, ...]
    wall_us: float
    """Median of several calls, without the profiler."""
    cpu_us: float
    """Processor time of the whole process for one such call."""
    busiest_thread_us: float
    """Processor time of the thread that worked most, which tells how evenly work was spread."""
    profiled_us: float
    """Wall time of the call that `operators` were collected in: of several, the one that is nearest
    to `wall_us`."""
    threads: int
    page_faults: float = 0.0
    """A call, on average: each maps a page of fresh memory."""
    system_share: float = 0.0
    """Of the processor time, what the operating system spent, mostly on those pages."""
    output_bytes: int = 0
    loops: LoopFacts | None = None
    """None where no library was built, or no disassembler is here."""


class Work(Record):
    bytes: float
    flops: float
    """Of matrix products, convolutions and attention."""
    elementwise: float = 0.0
    """Elements that all other operators make or reduce."""
    transcendental: float = 0.0
    """Those of them that need exp, tanh, a root or the like."""
    bytes_per_s: float | None = None
    """Measured ceilings of the device; None where none is known."""
    flops_per_s: float | None = None


class Collected(Record):
    gpu: KernelTrace | None = None
    timeline: DeviceTimeline | None = None
    cpu: CpuTrace | None = None
    work: Work | None = None
    calls: tuple[ProfiledCall, ...] = ()
    """Of a CPU, each by itself."""
    isolation: tuple[str, ...] = ()
    """The walls around the process that ran the candidate."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """What collecting took, by stage: `start` (interpreter and imports; less of them where the
    process was started ahead), `wait` (for the device), `prepare` (reference, inputs, counts),
    `build`, `warm_up` and `collect` in the process that ran the candidate; `process` is all of it
    as seen from outside, `turn` the wait for another ncu on the device before it, `import` the
    reading of the profiler's report, `trace` what times the launches that ncu did not count."""

    def after(self, seconds: dict[str, float]) -> Collected:
        return self.model_copy(update={"seconds": self.seconds | seconds})
