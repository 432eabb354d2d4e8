"""Rules of advice about arithmetic: which unit does it, and whether it is needed."""

from __future__ import annotations

from tools.advice.rule import DOWN, UP, AdviceRule, Figures, Found, multiplies
from tools.advice.thresholds import LIMITS
from tools.profiling.hot_kernel import stall_shares
from tools.profiling.profile_facts import percent
from tools.profiling.profile_report import Bottleneck


def _wants_tensor_cores(f: Figures) -> bool:
    """Not where the ceiling is not known: fp32 may be asked for."""
    return f["flops_ceiling"] >= LIMITS.tensor_flops_per_s


def _limited_by_memory(f: Figures) -> bool:
    """As a product with a short side or a short depth."""
    return f.get("dram_pct", 0.0) > LIMITS.dram_pct


def _no_tensor_cores(f: Figures) -> Found | None:
    # No recorded run has seen it: their tasks are in fp32, where it cannot apply.
    if not multiplies(f) or not _wants_tensor_cores(f) or _limited_by_memory(f):
        return None
    if f["tensor_pct"] >= min(LIMITS.tensor_used_pct, f.get("fma_pct", 100.0)):
        return None
    rate = f.get("flops_share", 0.0)
    reached = f", at {percent(rate)} of the rate measured for it" if rate else ""
    return Found(
        f"the matrix product runs on the FMA pipe ({f.get('fma_pct', 0.0):.0f} % busy) and the"
        f" tensor cores stand idle{reached}.",
        min(0.9, 1.0 - rate),
    )


def _fp64_arithmetic(f: Figures) -> Found | None:
    pipe, share = f.get("fp64_pct", 0.0), f.get("fp64_share", 0.0)
    if "fp64_pct" not in f and "fp64_share" not in f:
        return None
    if pipe < LIMITS.fp64_used_pct and share < LIMITS.fp64_share:
        return None
    if f.get("dram_pct", 0.0) >= max(LIMITS.dram_pct, pipe, f.get("issue_pct", 0.0)):
        return None  # A sum in fp64 that nothing waits for.
    if "fp64_pct" in f and pipe < share * f.get("issue_pct", 0.0):
        return None  # Products on the tensor cores, whose work that pipe does not show.
    # Besides the pipe, each value is converted there and back.
    cost = max(pipe / max(f.get("busiest_pct", 100.0), 1.0), share + f.get("conversion_share", 0.0))
    return Found(
        f"{percent(share)} of the arithmetic is in double precision and its pipe is busy"
        f" {pipe:.0f} %: a constant such as 0.5 or a function such as exp() without f makes it so.",
        min(0.9, cost),
        "" if "fp64_share" in f else "fp64_pct",
    )


def _fp32_matrix(f: Figures) -> Found | None:
    """Where tensor cores are not allowed, a better kernel drives the FMA pipe up."""
    if not multiplies(f) or _wants_tensor_cores(f) or _limited_by_memory(f):
        return None
    rate = f["flops_share"]
    busy = max((f["fma_pct"], "FMA pipe"), (f.get("fp64_tensor_pct", 0.0), "fp64 tensor cores"))
    reached = (
        f"the matrix product reaches {percent(rate)} of the rate that the library reaches on this"
        f" device, with the {busy[1]} {busy[0]:.0f} % busy"
    )
    gain = min(0.9, max(0.0, 1.0 - rate))
    if rate < LIMITS.near_product_rate:
        waits = f.get("stall_long_scoreboard_share", 0.0)
        # Without tiles in registers, the loads are what there are too many of.
        if waits < LIMITS.stall_share or f.get("registers", 0.0) < LIMITS.tile_registers:
            return Found(f"{reached}.", gain)
        return Found(
            f"{reached}; {percent(waits)} of the stalled warps wait for loads from global memory.",
            gain,
            change="Load the next tile while this one is used: into registers before the products"
            " and from there into shared memory behind them, or into a second buffer (cp.async)."
            " Let the lanes of a warp load neighbouring addresses, also where a tile is turned.",
        )
    shares = ", ".join(f"{words} {percent(share)}" for words, share in stall_shares(f)[:2])
    return Found(
        f"{reached}; of the stalls: {shares}.",
        gain,
        change="The tiles are large enough. What is left is how operands reach the multiply-adds:"
        " fewer and wider shared memory reads for each, the operands of the next step already in"
        " registers, deeper tiles between two barriers (cp.async in 3 stages), whole"
        " waves. Where that is not worth it, take the library's product and fuse what follows.",
    )


COMPUTE_RULES: tuple[AdviceRule, ...] = (
    AdviceRule(
        name="no_tensor_cores",
        bottleneck=Bottleneck.COMPUTE,
        change="Compute it on the tensor cores: wmma or mma.sync fragments (wgmma on sm_90a) over"
        " tiles in shared memory, fp32 accumulators; or leave the product to the library and fuse"
        " the rest.",
        done="used the tensor cores",
        watch=(("tensor_pct", UP), ("fma_pct", DOWN)),
        find=_no_tensor_cores,
    ),
    AdviceRule(
        name="fp64_arithmetic",
        bottleneck=Bottleneck.COMPUTE,
        change="Write constants with f (0.5f) and call the float functions (expf, sqrtf, fmaxf);"
        " accumulate in float, in several partial sums where accuracy needs it.",
        done="left double precision",
        watch=(("fp64_share", DOWN), ("fp64_pct", DOWN)),
        find=_fp64_arithmetic,
    ),
    AdviceRule(
        name="fp32_matrix",
        bottleneck=Bottleneck.COMPUTE,
        change="Do more for each operand that is loaded: 8x8 results a thread in registers, tiles"
        " of 128x128 a block, the next tile loaded while this one is used, float4 reads of shared"
        " memory, a grid of whole waves. Or leave the product to the library and fuse what follows"
        " it.",
        done="brought the product nearer to the library's rate",
        watch=(("flops_share", UP),),
        find=_fp32_matrix,
    ),
)
