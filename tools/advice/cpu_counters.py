"""Rules of advice that need the processor's own counters; silent where these can't be read."""

from __future__ import annotations

from tools.advice.rule import AdviceRule, Figures, Found
from tools.advice.thresholds import AdviceThresholds
from tools.profiling.advice import Direction
from tools.profiling.profile_facts import percent

UP, DOWN = Direction.UP, Direction.DOWN


def _branch_misses(f: Figures, limits: AdviceThresholds) -> Found | None:
    cost = limits.branch_miss_cycles * f["branch_misses_per_cycle"]
    if cost < limits.miss_cost:
        return None
    return Found(
        f"{percent(f['branch_miss_share'])} of the branches are guessed wrongly, which costs about"
        f" {percent(min(1.0, cost))} of the cycles.",
        min(1.0, cost) * f["own_share"],
    )


def _cache_lines(f: Figures, limits: AdviceThresholds) -> Found | None:
    ratio, cost = f["cache_lines_ratio"], limits.l1_miss_cycles * f["l1_misses_per_cycle"]
    if ratio < limits.extra_lines or cost < limits.miss_cost or f["cycle_instructions"] > 1.0:
        return None
    return Found(
        f"cache lines of {ratio:.1f} times the bytes that must move are fetched into L1, at"
        f" {f['cycle_instructions']:.1f} instructions a cycle.",
        min(1.0, cost) * (1.0 - 1.0 / ratio) * f["own_share"],
    )


COUNTED_ADVICE: tuple[AdviceRule, ...] = (
    AdviceRule(
        name="branch_misses",
        scope="call",
        when="mispredicted branches cost {miss_cost:.0%} of cycles, at {branch_miss_cycles:g}"
        " cycles each",
        change="Take branches on data out of the inner loop: std::min and std::max, a select"
        " (c ? a : b) of two values that are both at hand, masks, or one pass for each case.",
        watch=(("branch_misses_per_cycle", DOWN), ("cycle_instructions", UP)),
        model="that share",
        source="own model, assumed cost; untested with real counters",
        find=_branch_misses,
    ),
    AdviceRule(
        name="cache_lines",
        scope="call",
        when="lines fetched into L1 are {extra_lines:g} times the minimum bytes, at most 1"
        " instruction per cycle",
        change="Walk memory in its order: the loop over the last dimension innermost; where data is"
        " used again, work in blocks that stay in L1 (a few KiB), and copy columns into a buffer.",
        watch=(("cache_lines_ratio", DOWN), ("cycle_instructions", UP)),
        model="miss cycles, at {l1_miss_cycles:g} each, times needless share",
        source="own model, assumed cost; untested with real counters",
        find=_cache_lines,
    ),
)
