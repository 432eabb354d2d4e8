"""Figures of one kernel: its metrics, and what follows from several of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from evaluator.collect.collected import CollectedKernel
from tools.profiling.hot_kernel import PIPES
from tools.profiling.profile_facts import LOCAL_SECTORS, SECTOR_BYTES

_UNITS = ("dram_pct", "l2_pct", "l1_pct")
_MEMORY_STALLS = ("stall_long_scoreboard", "stall_lg_throttle", "stall_drain", "stall_membar",
                  "stall_mbarrier")  # fmt: skip
_NO_STALLS = ("stall_selected", "stall_not_selected")
"""Warps that could issue: counted among the reasons, and no waste."""


def kernel_figures(kernel: CollectedKernel, must_bytes: float) -> Iterator[tuple[str, float]]:
    """By name; `must_bytes` (0: not known) is what the whole call must move."""
    known = {name: value for name, value in kernel.metrics.items() if value is not None}
    yield from known.items()
    yield from _launch(known)
    yield from _busy(known)
    yield from _global_accesses(known, must_bytes)
    yield from _shared_accesses(known, kernel.launches)
    yield from _local_accesses(known)
    yield from _instructions(known)


def _launch(known: dict[str, float]) -> Iterator[tuple[str, float]]:
    waves = known.get("waves")
    if waves and waves > 1.0:
        yield "tail_share", (math.ceil(waves) - waves) / math.ceil(waves)
    if "grid" in known and known.get("sm_count"):
        yield "blocks_per_sm", known["grid"] / known["sm_count"]
    if "sm_cycles_mean" in known and known.get("sm_cycles_most"):
        yield "uneven_share", 1.0 - known["sm_cycles_mean"] / known["sm_cycles_most"]


def _busy(known: dict[str, float]) -> Iterator[tuple[str, float]]:
    """How much of the busiest unit is left, and how much of the time memory costs."""
    units = [known[name] for name in (*_UNITS, *PIPES) if name in known]
    if units:
        yield "busiest_pct", max(units)
        yield "headroom", max(0.0, 1.0 - max(units) / 100.0)
    stalls = {n: v for n, v in known.items() if n.startswith("stall_") and n not in _NO_STALLS}
    total = sum(stalls.values())
    # Shared memory and shuffles keep L1 busy, and cost no bytes.
    is_shared = known.get("shared_pct", 0.0) >= 0.5 * known.get("l1_pct", float("inf"))
    weighed = ("dram_pct", "l2_pct") if is_shared else _UNITS
    weights = [known[name] / 100.0 for name in weighed if name in known]
    if total > 0:
        for name, value in stalls.items():
            yield f"{name}_share", value / total
        waits = sum(stalls.get(name, 0.0) for name in _MEMORY_STALLS) / total
        yield "memory_stalls", waits
        weights.append(waits)
    if weights:
        yield "memory_weight", min(1.0, max(weights))


def _global_accesses(known: dict[str, float], must_bytes: float) -> Iterator[tuple[str, float]]:
    sectors = {"load": known.get("load_sectors"), "store": known.get("store_sectors")}
    for kind, count in sectors.items():
        requests = known.get(f"{kind}_requests")
        # 0: asynchronous copies, whose bytes are not counted here.
        per_sector = known.get(f"{kind}_bytes_per_sector") or None
        if per_sector is not None and requests:
            yield f"{kind}_efficiency", per_sector / SECTOR_BYTES
        if count is None or not requests:
            continue
        yield f"sectors_per_{kind}", count / requests
        if per_sector is not None:
            yield f"bytes_per_{kind}_request", per_sector * count / requests
    loads, stores = sectors["load"], sectors["store"]
    if loads is not None and stores is not None and loads + stores > 0:
        # Asynchronous copies are no load requests, and come from L2; so do spilled values.
        spilled = LOCAL_SECTORS * known.get("local_loads", 0.0)
        fetched = max(loads + spilled, known.get("l2_read_sectors", 0.0))
        yield "load_sector_share", fetched / (fetched + stores)
        yield "requested_share", loads / fetched if fetched else 0.0
        read_bytes = must_bytes - stores * SECTOR_BYTES
        # A kernel of a chain, or one that scatters its stores, tells nothing about the input.
        if "l2_read_sectors" in known and read_bytes > 0.1 * must_bytes > 0:
            yield "load_ratio", known["l2_read_sectors"] * SECTOR_BYTES / read_bytes


def _shared_accesses(known: dict[str, float], launches: int) -> Iterator[tuple[str, float]]:
    """`shared_pct` counts shuffles as well: what loads and stores take is had from wavefronts."""
    cycles = known.get("sm_count", 0.0) * known.get("sm_cycles_elapsed", 0.0) * launches
    if "shared_wavefronts" in known and cycles > 0:
        yield "shared_access_pct", 100.0 * known["shared_wavefronts"] / cycles
    if known.get("shared_wavefronts_ideal") and "shared_wavefronts" in known:
        yield "conflict_ways", known["shared_wavefronts"] / known["shared_wavefronts_ideal"]
        return
    wavefronts = sum(known.get(f"shared_{kind}_wavefronts", 0.0) for kind in ("load", "store"))
    conflicts = sum(known.get(f"shared_{kind}_conflicts", 0.0) for kind in ("load", "store"))
    if wavefronts > conflicts:
        yield "conflict_ways", wavefronts / (wavefronts - conflicts)


def _local_accesses(known: dict[str, float]) -> Iterator[tuple[str, float]]:
    if "local_loads" not in known:
        return
    local = known["local_loads"] + known.get("local_stores", 0.0)
    yield "local_requests", local
    others = known.get("load_requests", 0.0) + known.get("store_requests", 0.0)
    if local + others > 0:
        yield "local_share", local / (local + others)
    if known.get("instructions"):
        yield "local_per_instruction", local / known["instructions"]
    through_l2 = known.get("l2_read_sectors", 0.0) + known.get("l2_write_sectors", 0.0)
    if through_l2 > 0:
        yield "local_traffic", LOCAL_SECTORS * local / through_l2


def _instructions(known: dict[str, float]) -> Iterator[tuple[str, float]]:
    kinds = ("fp32", "fp64", "integer", "conversion")
    counts = {kind: known.get(f"{kind}_thread_instructions") for kind in kinds}
    total = sum(count for count in counts.values() if count is not None)
    for kind, count in counts.items():
        if count is not None and total > 0:
            yield f"{kind}_share", count / total
