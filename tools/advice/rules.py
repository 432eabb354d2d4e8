"""The table of rules, and the pieces of advice that a profile's figures lead to.

Causes come before symptoms: `EXPLAINS` says which rule accounts for what another one saw. A rule
that is explained by one that holds is not given, unless it promises several times as much.
"""

from __future__ import annotations

from collections.abc import Mapping

from tools.advice.access import ACCESS_RULES
from tools.advice.compute import COMPUTE_RULES
from tools.advice.cpu import CPU_ADVICE
from tools.advice.latency import LATENCY_RULES
from tools.advice.launch import LAUNCH_RULES
from tools.advice.occupancy import OCCUPANCY_RULES
from tools.advice.rule import AdviceRule, Figures, UnknownFigureError
from tools.advice.thresholds import LIMITS
from tools.advice.traffic import TRAFFIC_RULES
from tools.profiling.advice import MOST, Advice

GPU_ADVICE: tuple[AdviceRule, ...] = (
    *LAUNCH_RULES,
    *TRAFFIC_RULES,
    *ACCESS_RULES,
    *OCCUPANCY_RULES,
    *LATENCY_RULES,
    *COMPUTE_RULES,
)
_WAITS = ("memory_latency", "memory_queue", "dependency_chain")
_OCCUPANCY = ("occupancy_registers", "occupancy_shared", "occupancy_blocks")
_BYTES = ("dram_bound", "dram_rate", "cache_bandwidth", "poor_l1_reuse", "poor_l2_reuse",
          "redundant_passes")  # fmt: skip
_FEW_WARPS = ("memory_latency", "memory_queue", "dependency_chain", "scalar_access")
"""What few warps in flight look like: the number of warps is the cause, and easier to change."""

EXPLAINS: Mapping[str, tuple[str, ...]] = {
    # Gaps between kernels: fusing removes them, and a kernel so short tells nothing about itself.
    "launch_bound": (
        "unfused_kernels", *(rule.name for rule in GPU_ADVICE if rule.scope == "kernel"),
    ),
    "unfused_kernels": ("redundant_passes", "dram_bound", "dram_rate"),
    "library_time": ("redundant_passes",),
    # A device that is half empty waits for everything.
    "too_few_blocks": ("tail_wave", "uneven_work", "small_blocks", "barrier_wait", "scalar_access",
                       "memory_latency", "memory_queue", "instruction_fetch", "fp32_matrix",
                       "idle_tensor_cores", *_OCCUPANCY),
    "tail_wave": ("uneven_work", "fp32_matrix", "idle_tensor_cores"),
    "small_blocks": ("occupancy_blocks", *_FEW_WARPS),
    "uneven_work": ("memory_latency", "dependency_chain", "barrier_wait"),
    "occupancy_registers": _FEW_WARPS,
    "occupancy_shared": (*_FEW_WARPS, "barrier_wait"),
    "occupancy_blocks": _FEW_WARPS,
    # Sectors fetched in vain fill DRAM, the caches and the queues.
    "uncoalesced_loads": (*_BYTES, *_WAITS, "scalar_access", "fp32_matrix"),
    "uncoalesced_stores": (*_BYTES, *_WAITS, "scalar_access"),
    "scalar_access": ("memory_latency", "memory_queue", "dram_bound", "dram_rate",
                      "integer_arithmetic"),
    "redundant_passes": ("dram_bound", "dram_rate", "cache_bandwidth"),
    "poor_l1_reuse": ("cache_bandwidth", "memory_latency", "memory_queue", "fp32_matrix"),
    "poor_l2_reuse": ("dram_bound", "fp32_matrix"),
    "cache_bandwidth": ("memory_latency", "memory_queue", "fp32_matrix"),
    "bank_conflicts": ("shared_memory_queue", "cache_bandwidth", "barrier_wait", "scalar_access",
                       "fp32_matrix"),
    "atomics_contention": ("uneven_work", "scalar_access", "uncoalesced_stores", "barrier_wait",
                           "cache_bandwidth", *_WAITS),
    "register_spills": ("cache_bandwidth", "redundant_passes", "uncoalesced_stores", "dram_bound",
                        "dram_rate", "scalar_access", "fp32_matrix", *_OCCUPANCY, *_WAITS),
    "local_arrays": ("cache_bandwidth", "redundant_passes", "uncoalesced_stores", "dram_bound",
                     "dram_rate", "scalar_access", "fp32_matrix", *_WAITS),
    "divergence": ("uneven_work", "instruction_fetch", "dependency_chain"),
    "barrier_wait": ("memory_latency", "scalar_access"),
    # The arithmetic that should not be there is what fills the pipes and the chains.
    "no_tensor_cores": ("busy_fma", "integer_arithmetic", "shared_memory_queue", "scalar_access",
                        *_BYTES, *_WAITS),
    "idle_tensor_cores": ("busy_fma", *_WAITS),
    "fp64_arithmetic": ("special_functions", "integer_arithmetic", "busy_fma", "dependency_chain",
                        "shared_memory_queue"),
    "special_functions": ("shared_memory_queue", "shuffle_queue", "dependency_chain"),
    # Integer multiplications run on the FMA pipe.
    "integer_arithmetic": ("special_functions", "dependency_chain", "busy_fma"),
    # CPU
    "libm_calls": ("not_vectorised", "narrow_vectors", "busy_arithmetic", "branch_misses"),
    "not_vectorised": ("narrow_vectors", "busy_arithmetic"),
    "branch_misses": ("not_vectorised", "narrow_vectors", "busy_arithmetic"),
    "cache_lines": ("memory_bound", "busy_arithmetic"),
    "temporaries": ("page_faults", "memory_bound"),
    "page_faults": ("memory_bound",),
    "library_operators": ("temporaries", "page_faults", "python_glue"),
}  # fmt: skip
"""A cause, and the symptoms that it accounts for."""


def advise(
    figures: Mapping[str, float],
    subject: str = "",
) -> tuple[Advice, ...]:
    """At most `MOST` pieces of advice, the one with most to gain first.

    `subject` is the name of the hottest kernel, for the sentences. None are given within
    `at_the_bound` of the speed of light, nor for less than `least_gain` of the time.
    """
    known = Figures(figures)
    fraction = known.get("sol_fraction", 0.0)
    if fraction >= LIMITS.at_the_bound:
        return ()
    rules = CPU_ADVICE if "wall_us" in known else GPU_ADVICE
    held = [advice for rule in rules if (advice := _try(rule, known, subject))]
    given = [
        advice
        for advice in held
        if not any(
            advice.rule in EXPLAINS.get(cause.rule, ())
            and cause.gain >= LIMITS.cause_share * advice.gain
            for cause in held
        )
    ]
    given.sort(key=lambda advice: -advice.gain)
    # No advice gains more than what is left to the bound.
    left = 1.0 - fraction
    capped = [advice.model_copy(update={"gain": min(advice.gain, left)}) for advice in given]
    return tuple(capped[:MOST])


def _try(rule: AdviceRule, figures: Figures, subject: str) -> Advice | None:
    """What one rule says; None where it does not hold, or a figure that it needs is missing."""
    if rule.scope == "kernel" and not figures.get("hot_is_own", 1.0):
        return None  # The inside of a library's kernel is not the writer's to change.
    try:
        found = rule.find(figures)
        if found is None:
            return None
        share = figures.get("hot_share", 1.0) if rule.scope == "kernel" else 1.0
        most = _most(figures) if rule.scope == "kernel" else 1.0
        gain = min(1.0, max(0.0, min(found.gain, most)) * share)
        watched = [pair for pair in rule.watch if not found.figure or pair[0] == found.figure]
        figure, direction = next(pair for pair in watched if pair[0] in figures)
    except (UnknownFigureError, StopIteration):
        return None
    if gain < LIMITS.least_gain:
        return None
    place = f"In {subject}, " if subject and rule.scope == "kernel" else ""
    return Advice(
        rule=rule.name,
        evidence=place + (found.evidence if place else _capital(found.evidence)),
        change=found.change or rule.change,
        figure=figure,
        direction=direction,
        before=figures[figure],
        gain=gain,
    )


def _most(figures: Figures) -> float:
    """What the best kernel gains: one that does nothing takes time as well."""
    least_us = LIMITS.launch_us * figures.get("hot_launches", 1.0)
    return max(0.0, 1.0 - least_us / max(figures.get("hot_us", float("inf")), 1e-9))


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
