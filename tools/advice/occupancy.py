"""Rules of advice about what keeps warps off an SM."""

from __future__ import annotations

from collections.abc import Callable

from tools.advice.matrix_product import multiplies
from tools.advice.rule import AdviceRule, Figures, Found
from tools.advice.thresholds import LIMITS
from tools.profiling.advice import Direction
from tools.profiling.bottleneck import Bottleneck

_LIMITS = {
    "limit_warps": "blocks",
    "limit_blocks": "blocks",
    "limit_registers": "registers",
    "limit_shared": "shared",
}
"""Of those that allow as few, the first one is named: that as many blocks fit as there can be is
no use of registers, and the driver takes shared memory for each block."""


def _limiter(f: Figures) -> str:
    """What allows the fewest blocks on an SM; warps and block slots are the size of a block."""
    known = [name for name in _LIMITS if name in f]
    return _LIMITS[min(known, key=lambda name: f[name])] if known else ""


def _fills_shared_memory(f: Figures) -> bool:
    """By asynchronous copies, which are no loads: its size is what is in flight."""
    return f.get("load_sectors", 1.0) < 0.5 * f.get("l2_read_sectors", 0.0)


def _limited_by(limiter: str, words: Callable[[Figures], str]) -> Callable[[Figures], Found | None]:
    def find(f: Figures) -> Found | None:
        possible = f["occupancy_limit_pct"]
        if possible > LIMITS.occupancy_limit_pct or _limiter(f) != limiter:
            return None
        # With little to wait for, few warps are enough; products live on large tiles.
        if f.get("busiest_pct", 0.0) >= LIMITS.busy_pct or multiplies(f):
            return None
        if limiter == "shared" and _fills_shared_memory(f):
            return None
        return Found(
            f"{words(f)} let only {possible:.0f} % of the warps of an SM run at once, and no unit"
            " is busy.",
            (1.0 - possible / 100.0) * f.get("spare", 1.0),
        )

    return find


_WATCH = (("occupancy_limit_pct", Direction.UP), ("occupancy_pct", Direction.UP))
_WHEN = (
    "no matrix product; at most {occupancy_limit_pct:g} % of warps fit, no unit above"
    " {busy_pct:g} %, limit: "
)
_MODEL = "missing warps times headroom"
_SOURCE = "ncu TheoreticalOccupancy"

OCCUPANCY_RULES: tuple[AdviceRule, ...] = (
    AdviceRule(
        name="occupancy_registers",
        bottleneck=Bottleneck.OCCUPANCY,
        when=f"{_WHEN}registers",
        change="Use fewer registers a thread: smaller tiles, less unrolling, or"
        " __launch_bounds__(threads, blocks) with the number of blocks that should fit, as long as"
        " nothing spills.",
        watch=_WATCH,
        model=_MODEL,
        source=_SOURCE,
        find=_limited_by("registers", lambda f: f"{f['registers']:.0f} registers a thread"),
    ),
    AdviceRule(
        name="occupancy_shared",
        bottleneck=Bottleneck.OCCUPANCY,
        when=f"{_WHEN}shared memory, not filled by asynchronous copies",
        change="Use less shared memory a block: smaller or fewer tiles, narrower types, a buffer"
        " used twice; keep in registers what only one thread reads.",
        watch=_WATCH,
        model=_MODEL,
        source=_SOURCE,
        find=_limited_by(
            "shared", lambda f: f"{f['shared_bytes']:.0f} bytes of shared memory a block"
        ),
    ),
    AdviceRule(
        name="occupancy_blocks",
        bottleneck=Bottleneck.OCCUPANCY,
        when=f"{_WHEN}number or size of blocks",
        change="Choose a block size of which a whole number fills the 2048 threads of an SM with"
        " at most 32 blocks: 128, 256 or 512 threads.",
        watch=_WATCH,
        model=_MODEL,
        source=_SOURCE,
        find=_limited_by("blocks", lambda f: f"blocks of {f['block']:.0f} threads"),
    ),
)
