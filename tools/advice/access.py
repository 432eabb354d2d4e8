"""Rules of advice about single accesses to global, shared and local memory, and atomics."""

from __future__ import annotations

import math

from tools.advice.rule import DOWN, UP, AdviceRule, Figures, Found, has_product
from tools.advice.thresholds import LIMITS
from tools.advice.traffic import dram_headroom
from tools.profiling.profile_facts import SECTOR_BYTES, percent
from tools.profiling.profile_report import Bottleneck

_COALESCED_SECTORS = 4.0
_QUARTER_REGISTERS = 16384
"""Of an SM, whose warps are dealt out to four quarters."""


def _scattered(f: Figures, kind: str) -> Found | None:
    sectors = f[f"sectors_per_{kind}"]
    used = f.get(f"{kind}_efficiency")
    if used is None:
        if sectors < LIMITS.widest_sectors:
            return None
        used = _COALESCED_SECTORS / sectors
    if used >= LIMITS.efficiency or sectors < LIMITS.scattered_sectors:
        return None
    loads = f["load_sector_share"]
    # What else fills the caches, as spilled values do, is no part of what could be gained.
    part = loads * f.get("requested_share", 1.0) if kind == "load" else 1.0 - loads
    wasted = (1.0 - used) * part
    verb = "fetches" if kind == "load" else "writes"
    # Where L1 serves the rest of each sector, DRAM moves no more than it must: for the whole call,
    # or reads no more for this kernel than its threads use.
    is_least = f.get("traffic_ratio", 2.0) < LIMITS.least_traffic
    if kind == "load" and "load_sectors" in f:
        read = f.get("dram_read_bytes", float("inf"))
        is_least |= read < LIMITS.least_traffic * used * f["load_sectors"] * SECTOR_BYTES
    if is_least and f.get("dram_pct", 0.0) >= LIMITS.stream_dram_pct:
        return None
    most = dram_headroom(f) if is_least else 1.0
    return Found(
        f"a {kind} of one warp touches {sectors:.1f} sectors and uses {percent(used)} of the bytes"
        f" that it {verb}: neighbouring threads do not access neighbouring addresses.",
        min(wasted * f.get("memory_weight", 1.0), most),
    )


def _scalar_access(f: Figures) -> Found | None:
    kind = "load" if f.get("load_sector_share", 1.0) >= 0.3 else "store"
    width, used = f[f"bytes_per_{kind}_request"], f[f"{kind}_efficiency"]
    # Fewer sectors or bytes than neighbouring halves need: broadcasts, not a stream.
    sectors = f[f"sectors_per_{kind}"]
    if width > LIMITS.scalar_bytes or used < LIMITS.streaming or sectors < LIMITS.stream_sectors:
        return None
    if f.get("dram_pct", 0.0) > LIMITS.full_dram_pct or has_product(f):
        return None
    weight = f["memory_weight"]
    if weight < LIMITS.memory_weight:
        return None
    return Found(
        f"a {kind} of one warp moves {width:.0f} bytes, {width / 32:.0f} for each thread, where 512"
        " are possible.",
        f["headroom"] * weight,
        f"bytes_per_{kind}_request",
    )


def _bank_conflicts(f: Figures) -> Found | None:
    ways = f["conflict_ways"]
    # Shuffles and special functions wait in the same queue: few accesses are not what fills it.
    busy = f.get("shared_access_pct", f.get("shared_pct", 0.0))
    if ways < LIMITS.conflict_ways or busy < LIMITS.shared_access_pct:
        return None
    stalls = f.get("stall_short_scoreboard_share", 0.0) + f.get("stall_mio_throttle_share", 0.0)
    weight = min(1.0, max(busy / 100.0, stalls))
    return Found(
        f"shared memory needs {ways:.1f} wavefronts for each one that the accesses ask for: the"
        " threads of a warp meet in the same banks.",
        (1.0 - 1.0 / ways) * weight,
    )


def _has_local(f: Figures, *, spilled: bool) -> bool:
    """Whether local accesses are many, and most of them to spilled registers or to arrays."""
    few = (
        f["local_share"] < LIMITS.local_share
        or f.get("local_per_instruction", 1.0) < LIMITS.local_per_instruction
    )
    return not few and (f["spill_requests"] >= 0.5 * f["local_requests"]) is spilled


def _register_spills(f: Figures) -> Found | None:
    if not _has_local(f, spilled=True):
        return None
    registers, block, why, change = f["registers"], f.get("block", 0.0), "", ""
    allowed, a_quarter = _allowed_registers(block), math.ceil(block / 128.0)
    if registers <= allowed - 8:  # or nearly all: the compiler needs a few for itself
        change = f"Allow {allowed}, by __launch_bounds__({block:.0f}) alone, without -maxrregcount."
    elif registers <= allowed and a_quarter > 2:
        fewer = 128 * (a_quarter - 1)
        change = (
            f"Use blocks of at most {fewer} threads: each may have {_allowed_registers(fewer)}."
        )
    if change:
        why = (
            f", of at most {allowed} with blocks of {block:.0f}: {a_quarter} warps of each share"
            f" the {_QUARTER_REGISTERS} registers of a quarter of an SM"
        )
    most = "; they are most of what goes through L2" if f.get("local_traffic", 0.0) >= 0.5 else ""
    return Found(
        f"registers are spilled: {percent(f['local_share'])} of the accesses to memory are to"
        f" spilled values, at {registers:.0f} registers a thread{why}{most}.",
        min(f["local_share"] * f.get("memory_weight", 1.0), dram_headroom(f)),
        change=change,
    )


def _allowed_registers(block: float) -> int:
    """What the compiler may give a thread where one block of that size must fit on an SM."""
    a_quarter = max(1, math.ceil(block / 128.0))
    return min(255, _QUARTER_REGISTERS // (32 * a_quarter) // 8 * 8)


def _local_arrays(f: Figures) -> Found | None:
    if not _has_local(f, spilled=False):
        return None
    return Found(
        f"{percent(f['local_share'])} of the accesses to memory are to local memory, and they are"
        " no spills: an array of a thread is indexed by a value that is not known when compiling.",
        f["local_share"] * f.get("memory_weight", 1.0),
    )


ACCESS_RULES: tuple[AdviceRule, ...] = (
    AdviceRule(
        name="uncoalesced_loads",
        bottleneck=Bottleneck.CACHE_BANDWIDTH,
        change="Let thread i of a warp read element i: swap the loops or the thread indices, read a"
        " tile row by row into shared memory and turn it there, or store the data as a structure"
        " of arrays.",
        done="coalesced the loads",
        watch=(("load_efficiency", UP), ("sectors_per_load", DOWN)),
        find=lambda f: _scattered(f, "load"),
    ),
    AdviceRule(
        name="uncoalesced_stores",
        bottleneck=Bottleneck.CACHE_BANDWIDTH,
        change="Let thread i of a warp write element i: stage the result in shared memory and"
        " write it out row by row.",
        done="coalesced the stores",
        watch=(("store_efficiency", UP), ("sectors_per_store", DOWN)),
        find=lambda f: _scattered(f, "store"),
    ),
    AdviceRule(
        name="scalar_access",
        bottleneck=Bottleneck.LATENCY,
        change="Load and store 16 bytes a thread (float4, or uint4 for eight halves) with a scalar"
        " tail, and give each thread two to four such vectors.",
        done="widened the loads and stores",
        watch=(("bytes_per_load_request", UP), ("bytes_per_store_request", UP)),
        find=_scalar_access,
    ),
    AdviceRule(
        name="bank_conflicts",
        bottleneck=Bottleneck.CACHE_BANDWIDTH,
        change="Pad each row of the tile by one element (tile[32][33]) or swizzle the column with"
        " the row (column ^ row), so that the threads of a warp hit 32 different banks.",
        done="took out bank conflicts",
        watch=(("conflict_ways", DOWN),),
        find=_bank_conflicts,
    ),
    AdviceRule(
        name="register_spills",
        bottleneck=Bottleneck.CACHE_BANDWIDTH,
        change="Keep fewer values alive: smaller tiles for each thread, less unrolling.",
        done="spilled fewer registers",
        watch=(("local_requests", DOWN),),
        find=_register_spills,
    ),
    AdviceRule(
        name="local_arrays",
        bottleneck=Bottleneck.CACHE_BANDWIDTH,
        change="Index arrays of a thread by constants only: unroll their loops fully (#pragma"
        " unroll, fixed bounds), or put the array into shared memory.",
        done="moved arrays out of local memory",
        watch=(("local_requests", DOWN),),
        find=_local_arrays,
    ),
)
