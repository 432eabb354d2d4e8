"""The offline kernel writer's answer to one prompt: prose and a file, or prose alone.

It is no language model. It reads what the prompt says, traces the reference without PyTorch, picks
a schedule and writes the kernels out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agent.tuner.kernel_text import cpp, cuda
from agent.tuner.module_file import write
from agent.tuner.planning.fused import Fused
from agent.tuner.planning.partition import Program, partition
from agent.tuner.planning.policy import choose
from agent.tuner.planning.prompt import read
from agent.tuner.planning.schedule import Schedule, space
from agent.tuner.tracing.graph import CannotTrace
from agent.tuner.tracing.trace import trace

EMITTERS: Mapping[str, Callable[[Sequence[Fused], Schedule], str]] = {
    "cpp": cpp.load,
    "cuda": cuda.load,
}
"""Backend -> the Python text that builds the kernels and calls the result `kernels`."""


def answer(
    messages: Sequence[Mapping[str, str]], temperature: float | None = None, seed: int | None = None
) -> str:
    """Answer a prompt (OpenAI's message dictionaries), deterministically."""
    request = read(messages)
    if request.backend not in EMITTERS:
        return _decline(f"I write kernels for `cpp` and `cuda`, not for `{request.backend}`")
    if request.precision not in ("fp32", "tf32", ""):
        return _decline(f"I write fp32 kernels only, not `{request.precision}`")
    if request.hidden_sizes:
        return _decline("my kernels hold the sizes that I am shown, and this one must know others")
    try:
        program = partition(trace(request.reference))
    except CannotTrace as limit:
        return _decline(f"I can't follow this module: {limit} is beyond me")
    if not program.kernels:
        return _decline(
            "the module's work is in operators that I leave to PyTorch, and nothing follows them "
            "that I could fuse"
        )

    def kernels(schedule: Schedule) -> str:
        return EMITTERS[request.backend](program.kernels, schedule)

    known = space(request.backend, program.family)
    schedule, reason = choose(request, known, temperature, seed, kernels)
    one_case = request.cases or program.graph.fixed is not None
    text = write(schedule.plan(), request.reference, program, kernels(schedule), one_case=one_case)
    if request.bottleneck == "library":
        reason += "; most of the time is that of PyTorch's own kernels, which I can't shorten"
    return f"{_described(program)} Schedule: {reason}.\n\n```python\n{text}```\n"


def _decline(why: str) -> str:
    return f"I have no kernel for this one: {why}. I am a rule-based writer, not a language model."


def _described(program: Program) -> str:
    """The family of each kernel and how many operations it fuses."""
    left = sum(1 for s in program.steps if not isinstance(s, Fused) and s.kind == "library")
    fused = ", ".join(f"{k.family} ({len(k.body)})" for k in program.kernels[:8])
    return f"Kernels (and operations): {fused}; calls that stay with PyTorch: {left}."
