"""Kernels with a schedule of the test's choosing, and what it takes to build them."""

from random import Random
from typing import Any

from agent.tuner.answer import EMITTERS
from agent.tuner.module_file import write
from agent.tuner.planning.partition import partition
from agent.tuner.planning.schedule import Schedule, space
from agent.tuner.tracing.graph import CannotTrace
from agent.tuner.tracing.trace import trace
from evaluator.ipc.build_request import BuildRequest
from problems.loader import load_suite
from problems.sizes import SizeClass


def family(reference: str) -> str:
    """Of the schedules that a reference takes; empty where there is nothing to fuse."""
    try:
        program = partition(trace(reference))
    except CannotTrace:
        return ""
    return program.family if program.kernels else ""


def chosen(reference: str, backend: str = "cuda", **choices: str) -> Schedule:
    """The default with `choices` as far as the family knows them."""
    schedule = space(backend, family(reference)).default()
    for knob, choice in choices.items():
        if knob in schedule.choices:
            schedule = schedule.replace(knob, choice)
    return schedule


def safe(reference: str, random: Random) -> Schedule:
    """A schedule of the prior that holds nothing risky."""
    known = space("cuda", family(reference))
    schedule = known.draw(random)
    return schedule.adopting(known.default(), known.risks(schedule))


def candidate(reference: str, schedule: Schedule, backend: str = "cuda") -> str:
    """The answer's file."""
    program = partition(trace(reference))
    text = EMITTERS[backend](program.kernels, schedule)
    return write(schedule.plan(), reference, program, text)


def written(reference: str, **choices: str) -> str:
    """The answer's C++ file for `choices` over the defaults; empty where there is none."""
    if not family(reference):
        return ""
    return candidate(reference, chosen(reference, "cpp", **choices), backend="cpp")


def request(reference: str, schedule: Schedule) -> BuildRequest:
    """What the CUDA candidate will ask of the builder; nothing but `load_inline` is executed."""
    text = candidate(reference, schedule)
    begin = text.index("CPP_SOURCES = ")
    asked: dict[str, Any] = {}
    scope = {"load_inline": lambda **given: asked.update(given)}
    exec(text[begin : text.index("class ModelNew", begin)].rpartition(")\n")[0] + ")", scope)
    return BuildRequest(
        name=asked["name"],
        cpp_sources=tuple(asked["cpp_sources"]),
        cuda_sources=tuple(asked["cuda_sources"]),
        functions=tuple((f, f) for f in asked["functions"]),
        cflags=tuple(asked["extra_cflags"]),
        cuda_cflags=tuple(asked["extra_cuda_cflags"]),
        with_cuda=True,
    )


def claimed(size: SizeClass) -> dict[str, str]:
    """Our problems that the tuner has a kernel for: id -> reference."""
    references = {p.id: p.reference(size) for p in load_suite()}
    return {name: text for name, text in references.items() if family(text)}
