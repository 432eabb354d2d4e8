"""What is left to look at where no advice is given: a breakdown of the call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.advice.thresholds import LIMITS
from tools.profiling.bottleneck import Bottleneck
from tools.profiling.profile_facts import percent

_SHOWN = 0.01
"""Share of the call, from which a part is reported."""


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
