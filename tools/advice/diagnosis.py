"""What limits a kernel, and what to do about it: one reading of a profile's figures.

The bottleneck is the heading of the first piece of advice, so that the two never disagree. Where no
rule of advice holds, the busiest unit gives it, or what warps wait for: what a person would look at
next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.advice.rules import RULES, advise
from tools.advice.thresholds import LIMITS
from tools.profiling.hot_kernel import busiest_pipe, stall_shares
from tools.profiling.profile_facts import percent
from tools.profiling.profile_report import Advice, Bottleneck

_SHOWN = 0.01
"""Share of the call, from which a part is reported."""


@dataclass(frozen=True)
class Diagnosis:
    bottleneck: Bottleneck
    headline: str
    """One sentence that names the bottleneck and the figure that shows it."""
    advice: tuple[Advice, ...]
    """At most `MOST_ADVICE` pieces, the one with most to gain first."""


def diagnose(figures: Mapping[str, float], subject: str = "", source: str = "") -> Diagnosis:
    """Bottleneck and advice of a kernel by the figures of its profile (`tools.advice.figures`).

    `subject` is the name of the hottest kernel, for the sentences, `source` the candidate's file.
    """
    fraction = figures.get("sol_fraction", 0.0)
    reached = f"It reaches {percent(fraction)} of the speed of light for this work"
    attained = figures.get("attainable_us", 0.0) / figures.get("latency_us", float("inf"))
    if attained >= LIMITS.attainable:
        reached += f", and {percent(attained)} of what PyTorch's own copies and products reach here"
    is_there = fraction >= LIMITS.at_the_bound or attained >= LIMITS.attainable
    # Fewer operations than the reference's (Winograd) pass a bound of its arithmetic.
    if is_there and figures.get("busiest_pct", 100.0) >= LIMITS.bound_busy_pct:
        return Diagnosis(Bottleneck.AT_THE_BOUND, f"{reached}: little is left to gain.", ())
    if advice := advise(figures, subject, source):
        return Diagnosis(RULES[advice[0].rule].bottleneck, advice[0].evidence, advice)
    bottleneck, headline = _on_cpu(figures) if "wall_us" in figures else _on_gpu(figures, subject)
    return Diagnosis(bottleneck, headline, ())


def _on_gpu(f: Mapping[str, float], subject: str) -> tuple[Bottleneck, str]:
    dram = f.get("dram_pct")
    if dram is None:
        return _by_rates(f)
    if f.get("product_share", 0.0) >= LIMITS.library:
        return (Bottleneck.LIBRARY, f"{products_words(f)}: leave them to it.")
    place = f"while {subject} runs" if subject else "meanwhile"
    pipe, busiest = busiest_pipe(f)
    level = max(("l2_pct", "l1_pct"), key=lambda name: f.get(name, 0.0))
    if dram >= LIMITS.dram_pct:
        return (
            Bottleneck.MEMORY_BANDWIDTH,
            f"DRAM runs at {dram:.0f} % of its peak {place}: its bandwidth limits it.",
        )
    if busiest is not None and busiest >= LIMITS.compute_pct:
        return (
            Bottleneck.COMPUTE,
            f"{pipe[0].upper()}{pipe[1:]} is busy {busiest:.0f} % of the time {place}: arithmetic"
            " limits it, not memory.",
        )
    if f.get(level, 0.0) >= LIMITS.cache_pct:
        # Shared memory is the same unit, and what it does counts as the L1's.
        shared = f.get("shared_pct", 0.0) if level == "l1_pct" else 0.0
        is_shared = shared >= f[level] / 2
        unit, busy = ("Shared memory", shared) if is_shared else (level[:2].upper(), f[level])
        return (
            Bottleneck.CACHE_BANDWIDTH,
            f"{unit} is busy {busy:.0f} % of the time {place}, DRAM {dram:.0f} %.",
        )
    stalls = stall_shares(f)
    waits = f"; warps mostly wait for {stalls[0][0]}" if stalls else ""
    others = f", no unit of the SM above {busiest:.0f} %" if busiest is not None else ""
    return (
        Bottleneck.LATENCY,
        f"Nothing is saturated {place} (DRAM {dram:.0f} %{others}){waits}.",
    )


def _on_cpu(f: Mapping[str, float]) -> tuple[Bottleneck, str]:
    """Which part of the call is slow; in vectorised code on all threads, memory or arithmetic."""
    library = f.get("library_share", 0.0)
    # Products that run at the measured rate are left to the library.
    if library >= LIMITS.library and f.get("flops_share", 0.0) < LIMITS.product_rate:
        return (
            Bottleneck.LIBRARY,
            f"{f['operators']:.0f} operators a call, and {percent(library)} of the time in"
            " PyTorch's own.",
        )
    share, intensity = f.get("bandwidth_share"), f.get("intensity")
    if share is None or intensity is None or f["wall_us"] < LIMITS.threadable_us:
        return _UNKNOWN
    spread = f"{f['busy_threads']:.1f} of {f['threads']:.0f} threads share the work"
    rate = f"at {percent(share)} of the copy bandwidth"
    if f["system_share"] >= LIMITS.system_share and f["page_faults"] >= 1.0:
        return (
            Bottleneck.MEMORY_BANDWIDTH,
            f"{percent(f['system_share'])} of the processor time is spent on mapping fresh memory"
            f" ({f['page_faults']:.0f} page faults a call), {rate}.",
        )
    if share >= LIMITS.implied_bandwidth or intensity < LIMITS.intensity:
        return (
            Bottleneck.MEMORY_BANDWIDTH,
            f"Each byte needs little arithmetic and {spread}: memory limits it, {rate}.",
        )
    return (
        Bottleneck.COMPUTE,
        f"{spread} while memory runs {rate}: arithmetic (exp, division, dependent sums) limits it.",
    )


def _by_rates(f: Mapping[str, float]) -> tuple[Bottleneck, str]:
    """Without counters: what must be done, over the time, against what was measured."""
    rates = {
        Bottleneck.MEMORY_BANDWIDTH: ("bandwidth_share", "bytes that must move", "bandwidth"),
        Bottleneck.COMPUTE: ("flops_share", "operations that must be done", "rate"),
    }
    for bottleneck, (figure, what, rate) in rates.items():
        share = f.get(figure, 0.0)
        if LIMITS.implied_bandwidth <= share <= LIMITS.possible_rate:
            return (
                bottleneck,
                f"The {what}, over the time of the kernels, are {percent(share)} of the {rate}"
                " measured on this device.",
            )
    return _UNKNOWN


_UNKNOWN = (
    Bottleneck.UNKNOWN,
    "No figure that this profiler gives stands out: nothing can be named.",
)


def remainder(bottleneck: Bottleneck, figures: Mapping[str, float], beaten_by: str = "") -> str:
    """A sentence or two: whether to stop, and where the rest of the time goes. `beaten_by`: what
    is faster than the kernel, so that it should not stop."""
    parts = "; ".join(_parts(figures))
    if bottleneck is Bottleneck.AT_THE_BOUND:
        stop = beaten_by or "Stop here, unless the last per cents matter"
        return f"{stop}: {parts}." if parts else f"{stop}."
    nothing = "No rule of advice applies to these figures"
    return f"{nothing}. What there is to look at: {parts}." if parts else f"{nothing}."


def _parts(f: Mapping[str, float]) -> Iterator[str]:
    if (idle := 1.0 - f.get("busy_share", 1.0)) >= _SHOWN:
        yield f"{percent(idle)} of the call passes outside its kernels (launches and gaps)"
    products = f.get("product_share", 0.0)
    if _SHOWN <= products < LIMITS.library:  # else it is the headline
        yield products_words(f)
    if "hot_share" in f and "busy_share" in f:
        others = f["busy_share"] * (1.0 - products) - f["hot_share"]
        if others >= _SHOWN:
            yield f"{percent(others)} of it is kernels besides the slowest of your own"
    if (tail := f.get("tail_share", 0.0)) >= _SHOWN:
        yield f"{percent(tail)} of all slots for blocks stay empty, since the last wave is not full"
    if (dram := f.get("dram_pct", 0.0)) >= LIMITS.dram_pct and products < LIMITS.library:
        yield f"DRAM runs at {dram:.0f} % of its peak, of which copies reach about 93 %"


def products_words(f: Mapping[str, float]) -> str:
    """How much of the time a library's products take, and how well they run."""
    rate = f.get("product_rate")
    at = f", at {percent(rate)} of the rate measured here" if rate is not None else ""
    return f"{percent(f['product_share'])} of the device time is the library's matrix products{at}"
