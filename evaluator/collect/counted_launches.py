"""Of a kernel that a call launches many times, some launches are counted, and all are timed."""

from __future__ import annotations

from evaluator.collect.collected import CollectedKernel, KernelTrace
from evaluator.collect.nsight.ncu_metrics import QUANTITIES

COUNTED = (1, 2, 3, *(3 + n * (n + 3) // 2 for n in range(1, 15)))
"""By number within the call, to 122, spread as layers differ: `ncu` takes 0.5 s for each."""
_ALL_BELOW = 4
_SUMS = {name for name, (kind, _) in QUANTITIES.items() if kind == "sum"} | {"spill_requests"}


def are_all_counted(trace: KernelTrace) -> bool:
    return all(kernel.launches < _ALL_BELOW for kernel in trace.kernels)


def for_all(counted: KernelTrace, traced: KernelTrace) -> KernelTrace:
    """Sums over all launches, in proportion to their times in `traced`, a trace of the call."""
    known = {kernel.name: kernel for kernel in traced.kernels}
    scaled = (_for_all(kernel, known.get(kernel.name)) for kernel in counted.kernels)
    kernels = sorted(scaled, key=lambda kernel: -kernel.time_us)
    return counted.model_copy(update={"kernels": tuple(kernels)})


def _for_all(kernel: CollectedKernel, traced: CollectedKernel | None) -> CollectedKernel:
    times_us = traced.durations_us if traced is not None else ()
    of_counted = sum(times_us[number - 1] for number in COUNTED if number <= len(times_us))
    if len(times_us) <= kernel.launches or not of_counted:
        return kernel
    factor = sum(times_us) / of_counted
    metrics = {
        name: value * factor if value is not None and name in _SUMS else value
        for name, value in kernel.metrics.items()
    }
    update = {"launches": len(times_us), "time_us": kernel.time_us * factor, "metrics": metrics}
    return kernel.model_copy(update=update)
