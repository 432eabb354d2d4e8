"""A profile in at most 25 lines: bottleneck, the figures it rests on, distance to the bound."""

from __future__ import annotations

from evaluator.collect.collected import CollectedKernel, DeviceTimeline
from tools.profiling.hot_kernel import busiest_pipe, occupancy_limiter, stall_lines, stall_shares
from tools.profiling.profile_facts import (
    LOCAL_SECTORS,
    SECTOR_BYTES,
    Facts,
    byte_words,
    count_words,
    percent,
    shortened,
)
from tools.profiling.profile_report import Bottleneck, KernelShare, ProfilerTier

MAX_LINES = 25
_TOP = 4
_LEAST_ROW = 0.02
"""Share of the time, from which a kernel has a row of its own."""
_SECOND = 0.1
"""Share of the kernels' time, from which the second one's figures are reported as well."""
_STALL = 0.1
"""Of all that warps wait for, from which a further reason is reported."""
_GAPS = 0.05
"""Of the time of a call, from which gaps are reported, and what profiling changed."""
_L2_TRAFFIC = 1.3
"""Bytes through L2 over those that must move, from which they are reported."""
_BUSY_PCT = 40.0
"""Of peak, from which the kinds of arithmetic instructions are reported."""
_LEAST_SHARE = 0.01
"""Of the arithmetic, from which a kind of instruction is reported."""

_TIERS = {
    ProfilerTier.NCU: "Nsight Compute (hardware counters, cold caches)",
    ProfilerTier.TORCH_TRACE: "torch.profiler (times and launches, no counters)",
    ProfilerTier.CPU: "torch.profiler and a roofline estimate",
}


def summary(
    bottleneck: Bottleneck,
    headline: str,
    facts: Facts,
    kernels: tuple[KernelShare, ...],
    *,
    tier: ProfilerTier,
    reason: str = "",
    source: str = "",
) -> str:
    """Text for the prompt; its first line is `- bottleneck: ` and the code.

    `source`: the candidate's file, whose lines are quoted.
    """
    on_gpu = facts.collected.gpu is not None
    missing = facts.gpu.missing if on_gpu else ()
    because = f", because {reason}" if reason else ""
    lines = [
        f"- bottleneck: {bottleneck}",
        f"- {headline}",
        *_distance(facts),
        *_difference(facts),
        *(_gpu_figures(facts, source) if on_gpu else _cpu_figures(facts)),
    ]
    if because or tier is not ProfilerTier.NCU:
        lines.append(f"- measured by: {_TIERS[tier]}{because}")
    if missing:
        lines.append(f"- n/a here: {', '.join(missing[:6])}{' ...' if len(missing) > 6 else ''}")
    if len(kernels) > 1:
        lines += ["", *_table(kernels, on_gpu=on_gpu)]
    return "\n".join(lines[:MAX_LINES])


def _distance(facts: Facts) -> list[str]:
    fraction = facts.sol_fraction
    if facts.latency_us is None:
        return []
    if fraction is None or facts.bound_us is None:
        return [f"- time: {_us(facts.latency_us)} a call; no bound is known"]
    return [
        f"- time: {_us(facts.latency_us)} a call, the bound is {_us(facts.bound_us)}:"
        f" {percent(fraction)} of the speed of light,"
        f" at most {max(1.0, 1 / fraction):.2f}x left to gain"
    ]


def _difference(facts: Facts) -> list[str]:
    timed_us = facts.latency_us or facts.profiled_us
    if abs(facts.profiled_us - timed_us) < _GAPS * timed_us:
        return []
    return [
        f"- the profiled call took {_us(facts.profiled_us)}, the timed one"
        f" {_us(timed_us)}: shares are of the profiled call"
    ]


def _gpu_figures(facts: Facts, source: str) -> list[str]:
    alone = len(facts.gpu.kernels) == 1
    lines = _kernel_figures(facts.hot, alone)
    others = [kernel for kernel in facts.gpu.kernels if kernel is not facts.hot]
    second = max(others, key=lambda kernel: kernel.time_us, default=facts.hot)
    if not alone and second.time_us >= _SECOND * facts.gpu.busy_us:
        lines.append("; ".join(_kernel_figures(second, alone)).replace("; - ", "; "))
    lines += _timeline(facts.collected.timeline)
    whole = "" if alone else " of the whole call"
    if traffic := facts.traffic:
        moved, must = traffic
        lines.append(
            f"- DRAM traffic{whole}: {byte_words(moved)}, of which {byte_words(must)} must move"
            f" ({moved / must:.2f} times){_rate(facts, moved)}"
        )
    lines += _l2_traffic(facts, whole)
    lines += _access_figures(facts)
    return [*lines, *(f"- {line}" for line in stall_lines(facts, source))]


def _kernel_figures(kernel: CollectedKernel, alone: bool) -> list[str]:
    metric = kernel.metrics.get
    lines = []
    no_spills = metric("local_loads") == metric("local_stores") == 0.0
    shape = _join(
        f"the only kernel of the call, {_us(kernel.time_us)}" if alone else "",
        _value("", metric("grid"), "{:.0f} blocks"),
        _value("", metric("block"), "{:.0f} threads a block"),
        _value("", metric("waves"), "{:.2f} waves"),
        _value("", metric("registers"), "{:.0f} registers a thread"),
        "no spills" if no_spills else "",
        _value("", metric("shared_bytes") or None, "{:.0f} bytes of shared memory a block"),
    )
    if shape:
        lines.append(f"- {kernel.name}: {shape}")
    pipe, busiest = busiest_pipe(kernel.metrics)
    peaks = _join(
        *(_value(u, metric(f"{u.lower()}_pct"), "{:.0f} %") for u in ("DRAM", "L2", "L1")),
        _value(pipe, busiest, "{:.0f} %"),
        _value("SM clock", (metric("sm_clock_hz") or 0.0) / 1e9 or None, "{:.2f} GHz"),
    )
    if peaks:
        lines.append(f"- of peak: {peaks}")
    if reached := metric("occupancy_pct"):
        possible = metric("occupancy_limit_pct")
        limit = ""
        if possible is not None and possible < 99.0:
            limit = f" of at most {possible:.0f} % (limit: {occupancy_limiter(kernel.metrics)})"
        lines.append(f"- occupancy: {reached:.0f} %{limit}")
    if stalls := stall_shares(kernel.metrics):
        most = [stalls[0], *(reason for reason in stalls[1:3] if reason[1] >= _STALL)]
        listed = ", ".join(f"{words} {percent(share)}" for words, share in most)
        lines.append(f"- stalled warps wait for: {listed}")
    return lines


def _timeline(timeline: DeviceTimeline | None) -> list[str]:
    if timeline is None:
        return []
    gaps = timeline.gaps_us / timeline.span_us if timeline.span_us else 0.0
    if not timeline.others and gaps < _GAPS:
        return []
    others = [f"{o.launches} {o.name} {_us(o.time_us)}" for o in timeline.others]
    host = ""
    if gaps >= _GAPS and timeline.host_call_us >= timeline.gaps_us / 2:
        host = f", the host mostly in {timeline.host_call}"
    listed = _join(
        f"{count_words(timeline.kernels, 'kernel')} {_us(timeline.kernels_us)}",
        *others,
        f"gaps {_us(timeline.gaps_us)} of {_us(timeline.span_us)}{host}",
    )
    return [f"- on the device in a call: {listed}"]


def _rate(facts: Facts, moved: float) -> str:
    copied = facts.work.bytes_per_s if facts.work is not None else None
    if not copied or not facts.gpu.busy_us:
        return ""
    rate = moved / (facts.gpu.busy_us * 1e-6)
    return f", at {byte_words(rate)}/s; a copy reaches {byte_words(copied)}/s here"


def _l2_traffic(facts: Facts, whole: str) -> list[str]:
    read, written = facts.summed("l2_read_sectors"), facts.summed("l2_write_sectors")
    if facts.work is None or facts.work.bytes <= 0 or read is None or written is None:
        return []
    times = (read + written) * SECTOR_BYTES / facts.work.bytes
    if times <= _L2_TRAFFIC:
        return []
    local = LOCAL_SECTORS * (facts.summed("local_loads", "local_stores") or 0.0) / (read + written)
    spills = f", up to {percent(min(1.0, local))} of it spills" if local > 0.1 else ""
    return [
        f"- L2 traffic{whole}: {byte_words(read * SECTOR_BYTES)} read,"
        f" {byte_words(written * SECTOR_BYTES)} written ({times:.2f} times what must move{spills})"
    ]


def _access_figures(facts: Facts) -> list[str]:
    metrics = facts.hot.metrics
    lines = []
    sectors = [
        f"{kind} {count / requests:.1f}"
        for kind in ("load", "store")
        if (count := metrics.get(f"{kind}_sectors"))
        if (requests := metrics.get(f"{kind}_requests"))
    ]
    if sectors:
        lines.append(
            f"- sectors per access of a warp: {', '.join(sectors)} (coalesced: 4 with 4 bytes a"
            " thread, 16 with 16)"
        )
    made, needed = metrics.get("shared_wavefronts"), metrics.get("shared_wavefronts_ideal")
    if made and needed:
        busy = _value("busy", metrics.get("shared_pct"), "{:.0f} %")
        conflicts = f"{made:.3g} wavefronts, {made / needed:.2f} for each one needed"
        lines.append(f"- shared memory: {_join(busy, conflicts)} (above 1: bank conflicts)")
    kinds = ("fp32", "fp64", "integer", "conversion")
    counts = {kind: metrics.get(f"{kind}_thread_instructions") or 0.0 for kind in kinds}
    if (total := sum(counts.values())) and (busiest_pipe(metrics)[1] or 0.0) >= _BUSY_PCT:
        shares = {kind: n / total for kind, n in counts.items() if n >= _LEAST_SHARE * total}
        mix = ", ".join(f"{kind} {percent(share)}" for kind, share in shares.items())
        lines.append(f"- arithmetic instructions: {mix}")
    if local := metrics.get("local_loads"):
        lines.append(f"- local memory (spills, arrays indexed at run time): {local:.0f} loads")
    active = metrics.get("threads_per_instruction")
    if active is not None and active < 24:
        lines.append(f"- divergence: {active:.0f} of 32 threads active per instruction")
    return lines


def _cpu_figures(facts: Facts) -> list[str]:
    trace, work = facts.cpu, facts.work
    whole = max(facts.profiled_us, 1e-9)
    library, own = (time_us / whole for time_us in facts.cpu_times)
    lines = [
        f"- threads at work: {facts.busy_threads:.1f} of {trace.threads}",
        f"- share of the call: own functions {percent(own)}, PyTorch's operators"
        f" {percent(library)}, Python and dispatch {percent(max(0.0, 1.0 - own - library))}",
    ]
    implied = facts.cpu_bandwidth
    if work is not None and implied is not None:
        lines.append(
            f"- bytes that must move: {byte_words(work.bytes)}, at {percent(implied)} of the copy"
            " bandwidth measured here"
        )
    if trace.page_faults >= 100:
        lines.append(
            f"- fresh memory: {trace.page_faults:.0f} page faults a call,"
            f" {percent(trace.system_share)} of the processor time"
        )
    moved = facts.estimated_traffic
    if moved is not None and work is not None and moved > 1.05 * work.bytes:
        lines.append(f"- estimated traffic with temporaries: {byte_words(moved)}")
    rate = facts.implied_flops(trace.wall_us)
    if work is not None and rate is not None:
        lines.append(
            f"- operations: {work.flops / 1e6:.1f} million, at {percent(rate)} of the multiply-add"
            " rate measured here"
        )
    if (loops := trace.loops) is not None:
        calls = f"; calls per element: {', '.join(loops.calls[:4])}" if loops.calls else ""
        width = f", widest {loops.widest_bits} bits" if loops.widest_bits else ""
        lines.append(
            f"- inner loops: {loops.packed} packed and {loops.scalar} scalar floating-point"
            f" instructions{width}{calls}"
        )
    return lines


def _table(kernels: tuple[KernelShare, ...], *, on_gpu: bool) -> list[str]:
    shown = [kernels[0], *(k for k in kernels[1:_TOP] if k.share >= _LEAST_ROW)]
    what, count = ("kernel", "launches") if on_gpu else ("operator", "calls")
    lines = [f"| {what} | share | {count} | time | whose |", "|---|---|---|---|---|"]
    lines += [
        f"| {shortened(kernel.name, 60)} | {percent(kernel.share)} | {kernel.launches}"
        f" | {_us(kernel.time_us)} | {'own' if kernel.own else 'library'} |"
        for kernel in shown
    ]
    if rest := kernels[len(shown) :]:
        lines.append(
            f"| {len(rest)} more | {percent(sum(kernel.share for kernel in rest))}"
            f" | {sum(kernel.launches for kernel in rest)}"
            f" | {_us(sum(kernel.time_us for kernel in rest))} | |"
        )
    return lines


def _us(time_us: float) -> str:
    return f"{time_us:.1f} us" if time_us < 10_000 else f"{time_us / 1000:.1f} ms"


def _value(word: str, value: float | None, text: str) -> str:
    return "" if value is None else f"{word} {text.format(value)}".strip()


def _join(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
