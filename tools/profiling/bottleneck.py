"""From what was collected to what limits a candidate most, by rules that stand in order."""

from __future__ import annotations

from tools.profiling.cpu_rules import CPU_RULES
from tools.profiling.finding import Finding
from tools.profiling.gpu_rules import GPU_RULES
from tools.profiling.profile_facts import Facts
from tools.profiling.profile_report import Bottleneck


def find_bottleneck(facts: Facts) -> Finding:
    """The first rule that holds, of those for the kind of device that was profiled."""
    rules = GPU_RULES if facts.collected.gpu is not None else CPU_RULES
    for rule in rules:
        finding = rule(facts)
        if finding is not None:
            return finding
    return Finding(
        Bottleneck.UNKNOWN, "No figure that this profiler gives stands out: nothing can be named."
    )
