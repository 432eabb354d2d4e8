"""Rules of advice about the call as a whole and about how its work is cut into blocks."""

from __future__ import annotations

import math

from tools.advice.rule import DOWN, UP, AdviceRule, Figures, Found, has_product
from tools.advice.thresholds import LIMITS
from tools.profiling.profile_facts import percent
from tools.profiling.profile_report import Bottleneck


def _launch_bound(f: Figures) -> Found | None:
    launches, busy_us = f["launches"], f["busy_us"]
    idle = 1.0 - f.get("busy_share", 1.0)
    idle_us = f.get("whole_us", 0.0) - busy_us
    gaps = launches * LIMITS.launch_us
    if launches > 1 and (
        idle > 1.0 - LIMITS.idle_device
        or (launches >= LIMITS.many_launches and f["kernel_us"] < LIMITS.tiny_kernel_us)
    ):
        return Found(
            f"a call launches {launches:.0f} kernels of {f['kernel_us']:.1f} us on average, and"
            f" kernels run for {busy_us:.0f} us of it: launches and gaps cost the rest.",
            max(idle, (gaps - LIMITS.launch_us) / (gaps + busy_us)),
            "launches",
        )
    if launches == 1 and idle > 1.0 - LIMITS.idle_device and idle_us > LIMITS.idle_us:
        return Found(
            f"the only kernel runs for {busy_us:.1f} of {f['whole_us']:.1f} us: the host is late,"
            " or memory is set or copied.",
            idle,
            "busy_share",
            change="Do less on the host before the launch: allocate with empty and not with zeros,"
            " let the kernel set what it needs, and copy, convert and wait for nothing.",
        )
    return None


def _unfused_kernels(f: Figures) -> Found | None:
    if f["effective_launches"] < LIMITS.effective_launches or f["library_share"] >= LIMITS.library:
        return None
    ratio = f.get("traffic_ratio")
    if ratio is None:
        return Found(
            f"{f['launches']:.0f} kernels share the device time, the longest has"
            f" {percent(f['longest_share'])} of it: what one writes the next reads back.",
            (1.0 - f["longest_share"]) * LIMITS.unfused_gain,
            "launches",
        )
    if ratio < LIMITS.fusion_traffic:
        return None
    # The tiles of a product are read again and again, which costs little where arithmetic does.
    rate = f.get("bandwidth_share", 1.0) * ratio
    if has_product(f) and rate < LIMITS.traffic_dram_pct / 100.0:
        return None
    return Found(
        f"{f['launches']:.0f} kernels hand each other intermediates through memory: DRAM moves"
        f" {ratio:.1f} times the bytes that must move.",
        1.0 - 1.0 / ratio,
        "traffic_ratio",
    )


_BESIDES_PRODUCTS = (
    "Do the rest in your own kernels, fused with what comes before and after it, and leave the"
    " products to the library."
)


_ONE_PRODUCT = (
    "Write this operator yourself for its shape, if you know what the library's general kernel does"
    " in vain; there is nothing else in the call to fuse. Otherwise stop."
)


def _library_time(f: Figures) -> Found | None:
    """A product that runs at the rate of the device is no reason to leave the library."""
    share, products = f["library_share"], f.get("product_share", 0.0)
    rate = f.get("product_rate", 0.0)
    left_alone = rate >= LIMITS.product_rate or (has_product(f) and not rate)  # 0: not known
    if left_alone:
        share -= products
    if share < (LIMITS.other_library if rate >= LIMITS.product_rate else LIMITS.library):
        return None
    ratio = f.get("traffic_ratio", 1.0)
    fused = LIMITS.unfused_gain if ratio < LIMITS.fusion_traffic else 1.0 - 1.0 / ratio
    time = f"{percent(share)} of the device time is spent in kernels of PyTorch or its libraries"
    if not products or not rate:
        return Found(f"{time}.", share * fused, change=_BESIDES_PRODUCTS if left_alone else "")
    if rate >= LIMITS.product_rate:
        return Found(
            f"{time}, besides the products, which reach {percent(rate)} of the rate measured here.",
            share * fused,
            change=_BESIDES_PRODUCTS,
        )
    return Found(
        f"{time}; the products among them reach {percent(rate)} of the rate measured here.",
        share * fused,
        change=_ONE_PRODUCT if share - products < LIMITS.other_library else "",
    )


def _too_few_blocks(f: Figures) -> Found | None:
    blocks = f["blocks_per_sm"]
    idle = 1.0 - blocks
    words = f"{f['grid']:.0f} blocks for {f['sm_count']:.0f} SMs leave part of the device idle"
    if blocks < 1.0 - LIMITS.least_gain:
        # More SMs gain no more than the memory that all of them share has left.
        shared = max(f.get("dram_pct", 0.0), f.get("l2_pct", 0.0)) / 100.0
        return Found(f"{words}.", min(idle, 1.0 - shared))
    waves = f["waves"]
    if waves >= LIMITS.few_waves or f["busiest_pct"] >= LIMITS.busy_pct:
        return None
    reached = f["occupancy_pct"]
    if reached >= LIMITS.occupancy_pct:
        return None
    return Found(
        f"{f['grid']:.0f} blocks fill {waves:.2f} of a wave: {reached:.0f} % of the warps that the"
        " SMs can hold are there.",
        (1.0 - waves) * f["headroom"] * 0.5,
    )


def _tail_wave(f: Figures) -> Found | None:
    tail = f["tail_share"]
    if tail <= LIMITS.tail or f["waves"] <= 1.0:
        return None
    return Found(
        f"the blocks make {f['waves']:.2f} waves: the last one fills only part of the SMs, and"
        f" {percent(tail)} of all slots stay empty.",
        min(tail, f.get("headroom", 1.0)),
    )


def _small_blocks(f: Figures) -> Found | None:
    block = max(1.0, f["block"])
    idle = 1.0 - block / (32.0 * -(-block // 32.0))
    # As many registers fit whatever the size of a block.
    others = f.get("limit_registers", math.inf) < f.get("limit_blocks", 0.0)
    if (block >= LIMITS.small_block or others) and idle < LIMITS.tail:
        return None
    possible = min(1.0, block * f.get("limit_blocks", 32.0) / LIMITS.sm_threads)
    return Found(
        f"blocks of {block:.0f} threads: an SM can hold {percent(possible)} of its warps"
        + (f", and {percent(idle)} of each last warp has no thread." if idle else "."),
        max(idle, (1.0 - possible) * f.get("headroom", 1.0)),
    )


def _uneven_work(f: Figures) -> Found | None:
    uneven, blocks = f.get("uneven_share", 0.0), f.get("blocks_per_sm", 1.0)
    if blocks < 1.0:
        return None
    if uneven >= LIMITS.uneven:
        busy = f"busy for {percent(1 - uneven)} of the time of the busiest one"
        if f.get("waves", math.inf) > 1.0 or 1.0 - blocks / math.ceil(blocks) < 0.5 * uneven:
            words = f"SMs are {busy}: some blocks have more to do than others."
            return Found(words, uneven, "uneven_share")
        return Found(
            f"{f['grid']:.0f} blocks for {f['sm_count']:.0f} SMs: some of these get"
            f" {math.ceil(blocks)}, others {math.floor(blocks)}, and an SM is {busy}.",
            uneven,
            "uneven_share",
            change="Launch a whole number of blocks for each SM: larger or smaller tiles, or as"
            " many blocks as fit at once, which loop (grid stride).",
        )
    if f["block"] < LIMITS.small_block:
        return None  # An SM has not started the next ones when the first of them end.
    reached, possible = f["occupancy_pct"], f["occupancy_limit_pct"]
    if possible <= 0 or reached >= LIMITS.occupancy_gap * possible or f.get("waves", 1.0) < 1.0:
        return None
    return Found(
        f"{reached:.0f} % of the warps are active where {possible:.0f} % could be: some warps or"
        " blocks end long before others.",
        (1.0 - reached / possible) * f.get("headroom", 1.0),
        "occupancy_pct",
    )


LAUNCH_RULES: tuple[AdviceRule, ...] = (
    AdviceRule(
        name="launch_bound",
        bottleneck=Bottleneck.LAUNCH_OVERHEAD,
        scope="call",
        change="Do all of it in one kernel, or in few: fuse neighbouring steps, handle all slices"
        " in one launch (a grid over them), and leave no tensor operation in Python.",
        done="launched fewer kernels",
        watch=(("launches", DOWN), ("busy_share", UP)),
        find=_launch_bound,
    ),
    AdviceRule(
        name="unfused_kernels",
        bottleneck=Bottleneck.REDUNDANT_TRAFFIC,
        scope="call",
        change="Fuse the kernels: compute the next step on the value while it is in a register"
        " (or shared memory), and write only the final result.",
        done="fused kernels",
        watch=(("traffic_ratio", DOWN), ("launches", DOWN)),
        find=_unfused_kernels,
    ),
    AdviceRule(
        name="library_time",
        bottleneck=Bottleneck.LIBRARY,
        scope="call",
        change="Write the longest of these operators yourself, fused with what comes before and"
        " after it; keep a library's matrix product only where fusing gains nothing.",
        done="replaced library kernels",
        watch=(("library_share", DOWN),),
        find=_library_time,
    ),
    AdviceRule(
        name="too_few_blocks",
        bottleneck=Bottleneck.TOO_FEW_BLOCKS,
        change="Split the work into more blocks: smaller tiles, one block for each row or slice,"
        " or several blocks for each result and a second step that combines (split-K).",
        done="launched more blocks",
        watch=(("blocks_per_sm", UP),),
        find=_too_few_blocks,
    ),
    AdviceRule(
        name="tail_wave",
        bottleneck=Bottleneck.TOO_FEW_BLOCKS,
        change="Choose a block size or tile that makes the number of blocks a multiple of what the"
        " device holds at once, or launch exactly that many blocks and loop (grid stride).",
        done="filled the last wave",
        watch=(("tail_share", DOWN),),
        find=_tail_wave,
    ),
    AdviceRule(
        name="small_blocks",
        bottleneck=Bottleneck.OCCUPANCY,
        change="Use 128 to 256 threads a block, a multiple of 32; let several rows or tiles share"
        " a block where one is too small.",
        done="made the blocks larger",
        watch=(("block", UP), ("occupancy_limit_pct", UP)),
        find=_small_blocks,
    ),
    AdviceRule(
        name="uneven_work",
        bottleneck=Bottleneck.OCCUPANCY,
        change="Give all blocks and warps equal shares: split long rows, hand out work in small"
        " pieces (an atomic counter or a grid-stride loop), start the longest pieces first.",
        done="spread the work more evenly",
        watch=(("uneven_share", DOWN), ("occupancy_pct", UP)),
        find=_uneven_work,
    ),
)
