"""The table of rules, and the pieces of advice that a profile's figures lead to.

Causes come before symptoms: `EXPLAINS` says which rule accounts for what another one saw. A rule
that is explained by one that holds is not given, unless it promises several times as much.
"""

from __future__ import annotations

from collections.abc import Mapping

from tools.advice.access import ACCESS_RULES
from tools.advice.compute import COMPUTE_RULES
from tools.advice.cpu import CPU_ADVICE
from tools.advice.done import undone
from tools.advice.latency import LATENCY_RULES
from tools.advice.launch import LAUNCH_RULES
from tools.advice.rule import AdviceRule, Figures, UnknownFigureError
from tools.advice.thresholds import LIMITS
from tools.advice.traffic import TRAFFIC_RULES
from tools.profiling.profile_report import MOST_ADVICE, Advice

GPU_ADVICE: tuple[AdviceRule, ...] = (
    *LAUNCH_RULES,
    *TRAFFIC_RULES,
    *ACCESS_RULES,
    *LATENCY_RULES,
    *COMPUTE_RULES,
)
RULES = {rule.name: rule for rule in (*GPU_ADVICE, *CPU_ADVICE)}
_BYTES = ("dram_bound", "dram_rate", "redundant_passes")
_WAITS = ("memory_latency", "scalar_access")
"""What few warps in flight look like: the number of warps is the cause, and easier to change."""

EXPLAINS: Mapping[str, tuple[str, ...]] = {
    # Gaps between kernels: fusing removes them, and so short a kernel says nothing about itself.
    "launch_bound": (
        "unfused_kernels", *(rule.name for rule in GPU_ADVICE if rule.scope == "kernel"),
    ),
    "unfused_kernels": ("redundant_passes", "dram_bound", "dram_rate"),
    "library_time": ("redundant_passes",),
    # A device that is half empty waits for everything.
    "too_few_blocks": ("tail_wave", "uneven_work", "small_blocks", "barrier_wait", "scalar_access",
                       "memory_latency", "fp32_matrix", "occupancy_registers"),
    "tail_wave": ("uneven_work", "fp32_matrix"),
    "small_blocks": _WAITS,
    "uneven_work": ("memory_latency", "barrier_wait"),
    "occupancy_registers": _WAITS,
    # Sectors fetched in vain fill DRAM, the caches and the queues.
    "uncoalesced_loads": (*_BYTES, *_WAITS, "fp32_matrix"),
    "uncoalesced_stores": (*_BYTES, *_WAITS),
    "scalar_access": ("memory_latency", "dram_bound", "dram_rate"),
    "redundant_passes": ("dram_bound", "dram_rate"),
    "bank_conflicts": ("shared_memory_queue", "barrier_wait", "scalar_access", "fp32_matrix"),
    "register_spills": (*_BYTES, "uncoalesced_loads", "uncoalesced_stores", "fp32_matrix",
                        "occupancy_registers", *_WAITS),
    "local_arrays": (*_BYTES, "uncoalesced_loads", "uncoalesced_stores", "fp32_matrix", *_WAITS),
    "barrier_wait": _WAITS,
    # The arithmetic that should not be there fills the pipes and the queues.
    "no_tensor_cores": ("shared_memory_queue", *_BYTES, *_WAITS),
    "fp64_arithmetic": ("shared_memory_queue",),
    # CPU
    "libm_calls": ("not_vectorised", "narrow_vectors"),
    "not_vectorised": ("narrow_vectors",),
}  # fmt: skip
"""A cause, and the symptoms that it accounts for."""


def advise(figures: Mapping[str, float], subject: str = "", source: str = "") -> tuple[Advice, ...]:
    """At most `MOST_ADVICE` pieces of advice, the one with most to gain first.

    `subject` is the name of the hottest kernel, for the sentences; `source` the candidate's file,
    which shows what is done already. None are given within `at_the_bound` of the speed of light,
    nor for less than `least_gain` of the time.
    """
    known = Figures(figures)
    fraction = known.get("sol_fraction", 0.0)
    if fraction >= LIMITS.at_the_bound:
        return ()
    rules = CPU_ADVICE if "wall_us" in known else GPU_ADVICE
    held = [advice for rule in rules if (advice := _try(rule, known, subject, source))]
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
    return tuple(capped[:MOST_ADVICE])


def _try(rule: AdviceRule, figures: Figures, subject: str, source: str) -> Advice | None:
    """What one rule says; None where it does not hold, or a figure that it needs is missing."""
    inside = rule.scope == "kernel"
    if inside and not figures.get("hot_is_own", 1.0):
        return None  # The inside of a library's kernel is not the writer's to change.
    try:
        found = rule.find(figures)
        if found is None:
            return None
        share, most = (figures.get("hot_share", 1.0), _most(figures)) if inside else (1.0, 1.0)
        gain = min(1.0, max(0.0, min(found.gain, most)) * share)
        watched = [pair for pair in rule.watch if not found.figure or pair[0] == found.figure]
        figure, direction = next(pair for pair in watched if pair[0] in figures)
    except (UnknownFigureError, StopIteration):
        return None
    if gain < LIMITS.least_gain:
        return None
    said = found.evidence
    return Advice(
        rule=rule.name,
        evidence=f"In {subject}, {said}" if subject and inside else said[:1].upper() + said[1:],
        change=undone(found.change or rule.change, source),
        figure=figure,
        direction=direction,
        before=figures[figure],
        gain=gain,
    )


def _most(figures: Figures) -> float:
    """What the best kernel gains: one that does nothing takes time as well."""
    least_us = LIMITS.launch_us * figures.get("hot_launches", 1.0)
    return max(0.0, 1.0 - least_us / max(figures.get("hot_us", float("inf")), 1e-9))
