"""Rules of advice about how many bytes go through DRAM and the caches."""

from __future__ import annotations

from tools.advice.rule import DOWN, UP, AdviceRule, Figures, Found, has_product
from tools.advice.thresholds import LIMITS
from tools.profiling.profile_report import Bottleneck

_FEWER_BYTES = (
    "Move fewer bytes: narrower types for what stays inside, nothing written that is recomputed"
    " cheaply; for the rest of the bandwidth, "
)
_MORE_IN_FLIGHT = (
    "Only the rate is left: have each thread issue two to four independent loads before it uses the"
    " first, or keep several tiles under way (cp.async in stages); choose a grid of whole waves,"
    " and store what is not read again with __stcs."
)


def dram_headroom(f: Figures) -> float:
    """Share of the time that is gained where the same bytes move as fast as they can."""
    return max(0.0, 1.0 - f.get("dram_pct", 0.0) / LIMITS.best_dram_pct)


def _loads_wide(f: Figures) -> bool:
    """Bulk and asynchronous copies are no load requests: where there are none, as well."""
    return f.get("bytes_per_load_request", LIMITS.wide_bytes) >= LIMITS.wide_bytes


def _dram_bound(f: Figures) -> Found | None:
    dram = f["dram_pct"]
    if dram < LIMITS.dram_pct:
        return None
    ratio = f.get("traffic_ratio")
    if ratio is not None and ratio < LIMITS.least_traffic:
        return None
    extra = f", {ratio:.2f} times the bytes that must move" if ratio is not None else ""
    return Found(
        f"DRAM runs at {dram:.0f} % of its peak{extra}.",
        dram_headroom(f),
        change=f"{_FEWER_BYTES}several independent loads in flight." if _loads_wide(f) else "",
    )


def _dram_rate(f: Figures) -> Found | None:
    dram = f["dram_pct"]
    if dram < LIMITS.dram_pct or f["traffic_ratio"] >= LIMITS.least_traffic:
        return None
    waits = f.get("memory_stalls", 1.0) >= LIMITS.stream_waits
    if _loads_wide(f) and (dram >= LIMITS.stream_dram_pct or not waits):
        return None  # Good streams are no faster, and others wait for something else.
    return Found(
        f"DRAM moves only the bytes that must move, at {dram:.0f} % of its peak.",
        dram_headroom(f),
        change=_MORE_IN_FLIGHT if _loads_wide(f) else "",
    )


def _redundant_passes(f: Figures) -> Found | None:
    if has_product(f):
        return None
    ratio = f.get("traffic_ratio", 1.0)
    # 1.5 is what rows too long for an SM need: read for their sums, and once more to be written.
    if ratio >= LIMITS.redundant_reads and f["dram_pct"] >= LIMITS.traffic_dram_pct:
        return Found(
            f"DRAM moves {ratio:.1f} times the bytes that must move: data is read or written more"
            " than once.",
            (1.0 - 1.0 / ratio) * min(1.0, f["dram_pct"] / LIMITS.dram_pct),
            "traffic_ratio",
        )
    reads = f["load_ratio"]
    if reads < LIMITS.redundant_reads or f["memory_weight"] < LIMITS.memory_weight:
        return None
    return Found(
        f"the SMs fetch {reads:.1f} times the bytes of the input from L2: the same elements are"
        " read in several passes.",
        # Weights that all rows share are fetched again as well: DRAM is what is left to gain.
        min((1.0 - 1.0 / reads) * f["memory_weight"] * LIMITS.cached_pass, dram_headroom(f)),
        "load_ratio",
    )


TRAFFIC_RULES: tuple[AdviceRule, ...] = (
    AdviceRule(
        name="redundant_passes",
        bottleneck=Bottleneck.REDUNDANT_TRAFFIC,
        change="Read each element once and write it once: keep a row in registers or shared memory"
        " between the steps, or combine the passes (online softmax, Welford), and use no"
        " temporary tensor.",
        done="left out passes over memory",
        watch=(("traffic_ratio", DOWN), ("load_ratio", DOWN)),
        find=_redundant_passes,
    ),
    AdviceRule(
        name="dram_bound",
        bottleneck=Bottleneck.MEMORY_BANDWIDTH,
        change=f"{_FEWER_BYTES}16-byte accesses with several independent loads in flight.",
        done="moved fewer bytes",
        watch=(("traffic_ratio", DOWN), ("dram_pct", UP)),
        find=_dram_bound,
    ),
    AdviceRule(
        name="dram_rate",
        bottleneck=Bottleneck.MEMORY_BANDWIDTH,
        change="Only the rate is left: load and store 16 bytes a thread, with two to four"
        " independent loads in flight, choose a grid of whole waves, and store what is not read"
        " again with __stcs.",
        done="used more of the bandwidth",
        watch=(("dram_pct", UP),),
        find=_dram_rate,
    ),
)
