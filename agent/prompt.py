"""The one message of a turn, rendered from `prompts/turn.md.j2`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from agent.config import RunConfig
from agent.feedback import Section
from agent.strategies import letters_of, turns_of
from evaluator.evaluation import Backend, Precision

if TYPE_CHECKING:
    from jinja2 import Environment

BACKEND_NOTES = {
    Backend.CPP: "C++ for the CPU, compiled with g++ through "
    "`torch.utils.cpp_extension.load_inline`; OpenMP and vector intrinsics are welcome",
    Backend.CUDA: "CUDA C++, compiled with nvcc through "
    "`torch.utils.cpp_extension.load_inline` and its `cuda_sources`",
    Backend.TRITON: "Triton, functions under `@triton.jit`",
}

PRECISION_NOTES = {
    Precision.FP32: "IEEE single precision throughout: no TF32, no half-precision intermediates",
    Precision.TF32: "single precision in memory; matrix products may use TF32 tensor cores",
    Precision.FP16: "inputs, parameters and outputs are fp16; accumulate sums in fp32",
    Precision.BF16: "inputs, parameters and outputs are bf16; accumulate sums in fp32",
}


@dataclass(frozen=True)
class Hardware:
    """The device that the kernel is for, as the prompt describes it."""

    name: str
    lines: tuple[str, ...] = ()


def render_prompt(
    config: RunConfig,
    reference: str,
    hardware: Hardware,
    turn: int,
    feedback: Sequence[Section] = (),
    *,
    hidden_sizes: bool = False,
) -> str:
    """The prompt of one turn. `reference` is the problem's source with its sizes substituted.

    With `hidden_sizes` it says that other sizes are tried as well.
    """
    environment = _environment()
    example = environment.get_template(f"example_{config.backend}.md.j2").render()
    text = environment.get_template("turn.md.j2").render(
        backend=config.backend,
        backend_note=BACKEND_NOTES[config.backend],
        hardware=hardware,
        precision=config.precision,
        precision_note=PRECISION_NOTES[config.precision],
        budget_note=budget_note(config, turn),
        reference=reference.strip("\n"),
        backend_example=example.strip("\n"),
        feedback=feedback,
        hidden_sizes=hidden_sizes,
    )
    return text.rstrip("\n") + "\n"


def budget_note(config: RunConfig, turn: int) -> str:
    """Which attempt this is; nothing that a draft without feedback could not know."""
    if not letters_of(config):
        return "You have one attempt; it is judged as it stands."
    left = turns_of(config) - turn
    return f"This is turn {turn}; with it, at most {left} are left. The best kernel counts."


def first_prompt(
    config: RunConfig, reference: str, hardware: Hardware, *, hidden_sizes: bool = False
) -> str:
    """The prompt of turn 0, which has no feedback: what `--dry-run` shows."""
    return render_prompt(config, reference, hardware, turn=0, hidden_sizes=hidden_sizes)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("agent", "prompts"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
