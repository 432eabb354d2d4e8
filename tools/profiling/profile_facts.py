"""One candidate's forward call in figures, whatever profiler they came from."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.collect.collected import Collected, CollectedKernel, CpuTrace, KernelTrace, Work

SECTOR_BYTES = 32.0
"""What L2 and DRAM move at a time."""
LOCAL_SECTORS = 4.0
"""Of an access to local memory, at least: 4 bytes of each thread, side by side."""
AT_THE_BOUND = 0.85
"""Share of the speed of light above which little is left to gain."""
_DIFFERS = 0.25
"""Of the timed call's time, from which a profiled call that takes another time is reported."""


@dataclass(frozen=True)
class Facts:
    """One candidate's forward call, as measured. Times in microseconds."""

    collected: Collected
    own: frozenset[str]
    """Names of the candidate's own kernels."""
    latency_us: float | None = None
    bound_us: float | None = None
    attainable_us: float | None = None
    """At the rates that library calls reach on the device; None: not known, or it is faster."""

    @property
    def sol_fraction(self) -> float | None:
        """Bound over latency: 1.0 is perfect."""
        if not self.latency_us or self.bound_us is None:
            return None
        return self.bound_us / self.latency_us

    @property
    def profiled_us(self) -> float:
        """A call's time under the profiler; on a GPU, where kernels may run apart, at least their
        sum."""
        if self.collected.gpu is not None:
            return max(self.gpu.busy_us, self.gpu.span_us or 0.0)
        return max(self.cpu.profiled_us, sum(o.time_us for o in self.cpu.operators))

    @property
    def excess_us(self) -> float:
        """By how much the profiled call took longer than the timed one; 0 for up to a quarter."""
        timed_us = self.latency_us or self.profiled_us
        excess = self.profiled_us - timed_us
        return excess if excess > _DIFFERS * timed_us else 0.0

    @property
    def gpu(self) -> KernelTrace:
        assert self.collected.gpu is not None
        return self.collected.gpu

    @property
    def cpu(self) -> CpuTrace:
        assert self.collected.cpu is not None
        return self.collected.cpu

    @property
    def cpu_times(self) -> tuple[float, float]:
        """Microseconds of the profiled call in PyTorch's operators, and in own functions."""
        own = sum(operator.time_us for operator in self.cpu.operators if operator.own)
        return sum(operator.time_us for operator in self.cpu.operators) - own, own

    @property
    def busy_threads(self) -> float:
        """Over how many threads of a CPU the work was spread.

        Processor time of all over that of the busiest: on a machine that others use too, processor
        time over wall time would say less.
        """
        trace = self.cpu
        if trace.busiest_thread_us <= 0:
            return min(trace.threads, trace.cpu_us / trace.wall_us) if trace.wall_us else 0.0
        return min(float(trace.threads), trace.cpu_us / trace.busiest_thread_us)

    @property
    def estimated_traffic(self) -> float | None:
        """Bytes moved on a CPU: what must move, and each temporary written once and read once."""
        if self.work is None or self.work.bytes <= 0:
            return None
        allocated = sum(operator.allocated_bytes for operator in self.cpu.operators)
        return self.work.bytes + 2.0 * max(0, allocated - self.cpu.output_bytes)

    @property
    def cpu_bandwidth(self) -> float | None:
        """Bytes that must move over the better of two times, as a share of the measured one."""
        return self.implied_bandwidth(min(self.cpu.wall_us, self.latency_us or self.cpu.wall_us))

    @property
    def work(self) -> Work | None:
        return self.collected.work

    @property
    def hot(self) -> CollectedKernel:
        """The candidate's own kernel that takes most time; without one, the longest of all."""
        own = [kernel for kernel in self.gpu.kernels if kernel.name in self.own]
        return max(own or self.gpu.kernels, key=lambda kernel: kernel.time_us)

    @property
    def traffic(self) -> tuple[float, float] | None:
        """Bytes that all kernels moved to and from DRAM, and bytes that must move."""
        moved = self.summed("dram_read_bytes", "dram_write_bytes")
        if self.work is None or self.work.bytes <= 0 or moved is None:
            return None
        return moved, self.work.bytes

    def summed(self, *names: str) -> float | None:
        """These metrics of all kernels together; None where one is not known."""
        parts = [kernel.metrics.get(name) for kernel in self.gpu.kernels for name in names]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    def implied_bandwidth(self, time_us: float) -> float | None:
        """Bytes that must move, over `time_us`, as a share of the measured bandwidth."""
        if self.work is None or not self.work.bytes_per_s or time_us <= 0:
            return None
        return self.work.bytes / (time_us * 1e-6) / self.work.bytes_per_s

    def implied_flops(self, time_us: float) -> float | None:
        """Operations that must be done, over `time_us`, as a share of the measured rate."""
        if self.work is None or not self.work.flops_per_s or time_us <= 0:
            return None
        return self.work.flops / (time_us * 1e-6) / self.work.flops_per_s


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters of `text`, cut between words or between a name's parts."""
    if len(text) <= limit:
        return text
    head = text[: limit - 4]
    end = max(head.rfind(sign) for sign in " ,<(:_")
    return f"{head[:end] if end > limit // 2 else head} ..."


def byte_words(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def count_words(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
