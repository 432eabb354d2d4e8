"""Kernels with a schedule of the test's choosing."""

from agent.tuner.cpp import program as cpp
from agent.tuner.module_file import write
from agent.tuner.planning.partition import partition
from agent.tuner.planning.rewrite import fewest_passes
from agent.tuner.planning.schedule import space
from agent.tuner.tracing.trace import trace


def written(reference: str, **choices: str) -> str:
    """The answer's file for `choices` over the defaults; empty where there is nothing to fuse."""
    traced = trace(reference)
    program = partition(traced.graph)
    if not program.kernels:
        return ""
    schedule = space("cpp", program.family).default()
    for knob, choice in choices.items():
        if knob in schedule.choices:
            schedule = schedule.replace(knob, choice)
    if schedule.choices.get("passes") == "fewest":
        program = partition(fewest_passes(traced.graph, traced.builder))
    return write(schedule.plan(), traced.tree, program, cpp.load(program.kernels, schedule))
