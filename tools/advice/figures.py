"""The figures that rules of advice read: of the whole call, and of its hottest kernel.

A figure that this profiler or this chip cannot give is left out. The mapping is flat and holds
numbers only, so that a rule can be tried again on a stored profile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.advice.kernel_figures import kernel_figures
from tools.advice.thresholds import LIMITS
from tools.profiling.profile_facts import Facts

_PRODUCT = re.compile(
    r"gemm|gemv|fprop|dgrad|wgrad|winograd|implicit|cutlass|nvjet|convolve|fmha|flash"
    r"|^Kernel2$|cublas|splitK|fft[12]d|nchwTo|nhwcTo",
    re.IGNORECASE,
)
"""In the names that cuBLAS, cuDNN and CUTLASS give them, and their transforms and last steps."""


def figures(facts: Facts) -> dict[str, float]:
    """All that is known of one candidate, by name. Units are in the names."""
    on_gpu = facts.collected.gpu is not None
    return dict(_call(facts)) | dict(_gpu(facts) if on_gpu else _cpu(facts))


def _call(facts: Facts) -> Iterator[tuple[str, float]]:
    known = {"latency_us": facts.latency_us, "bound_us": facts.bound_us,
             "attainable_us": facts.attainable_us, "sol_fraction": facts.sol_fraction}  # fmt: skip
    yield from ((name, value) for name, value in known.items() if value is not None)
    work = facts.work
    if work is None or work.bytes <= 0:
        return
    yield "matrix_intensity", work.flops / work.bytes
    operations = work.flops + work.elementwise + 20.0 * work.transcendental
    yield "intensity", operations / work.bytes
    if work.flops_per_s:
        yield "flops_ceiling", work.flops_per_s


def _gpu(facts: Facts) -> Iterator[tuple[str, float]]:
    trace, hot = facts.gpu, facts.hot
    busy_us = trace.busy_us
    yield from kernel_figures(hot, facts.work.bytes if facts.work is not None else 0.0)
    yield "hot_is_own", float(hot.name in facts.own)
    if busy_us <= 0:
        return  # this chip gives no times
    span_us = 0.0 if facts.excess_us else trace.span_us or 0.0
    whole_us = max(facts.latency_us or 0.0, span_us)
    yield "launches", float(trace.launches)
    yield "busy_us", busy_us
    yield "kernel_us", busy_us / trace.launches
    if whole_us:
        yield "whole_us", whole_us
        # Under ncu caches are cold and clocks differ: kernels may add up to more than the call.
        yield "busy_share", min(1.0, busy_us / whole_us)
    yield "hot_us", hot.time_us
    yield "hot_launches", float(hot.launches)
    yield "hot_share", min(1.0, hot.time_us / max(whole_us, busy_us))
    shares = [kernel.time_us / busy_us for kernel in trace.kernels]
    yield "longest_share", max(shares)
    # As many launches of one size would count as themselves (inverse Simpson index).
    squares = sum(k.launches * (k.time_us / k.launches / busy_us) ** 2 for k in trace.kernels)
    yield "effective_launches", 1.0 / squares
    library = [kernel for kernel in trace.kernels if kernel.name not in facts.own]
    yield "library_share", sum(kernel.time_us for kernel in library) / busy_us
    products_us = sum(kernel.time_us for kernel in library if _PRODUCT.search(kernel.name))
    yield "product_share", products_us / busy_us
    rate = facts.implied_flops(products_us)
    # Beyond what the device can do: then other kernels do the task's products.
    if rate is not None and rate < LIMITS.possible_rate:
        yield "product_rate", rate
    if (share := facts.implied_bandwidth(busy_us)) is not None:
        yield "bandwidth_share", share
    if (share := facts.implied_flops(hot.time_us)) is not None:
        yield "flops_share", share
    if (traffic := facts.traffic) is not None:
        moved, must = traffic
        yield "traffic_ratio", moved / must


def _cpu(facts: Facts) -> Iterator[tuple[str, float]]:
    trace = facts.cpu
    # What the profiled call took longer counts as neither: no advice rests on it.
    whole = max(facts.profiled_us - facts.excess_us, 1e-9)
    library, own = (max(0.0, us - facts.excess_us) / whole for us in facts.cpu_times)
    yield "library_share", library
    yield "own_share", own
    yield "wall_us", trace.wall_us
    yield "threads", float(trace.threads)
    yield "busy_threads", facts.busy_threads
    yield "operators", float(sum(operator.calls for operator in trace.operators))
    yield "page_faults", trace.page_faults
    yield "system_share", trace.system_share
    if (moved := facts.estimated_traffic) is not None and facts.work is not None:
        yield "traffic_ratio", moved / facts.work.bytes
    if (share := facts.cpu_bandwidth) is not None:
        yield "bandwidth_share", share
    if (share := facts.implied_flops(trace.wall_us)) is not None:
        yield "flops_share", share
    if (loops := trace.loops) is not None:
        yield "libm_calls", float(len(loops.calls))
        yield "widest_bits", float(loops.widest_bits)
        if loops.packed + loops.scalar:
            yield "packed_share", loops.packed / (loops.packed + loops.scalar)
