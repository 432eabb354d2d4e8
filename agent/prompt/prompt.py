"""The one message of a turn, rendered piece by piece from the templates in `texts/`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.run_config import RunConfig
from agent.config.schedule import schedule_of
from agent.prompt.section import Section
from agent.record import figures
from agent.record.result import Spent
from agent.record.turn import PromptLedger
from evaluator.evaluation import Backend
from evaluator.rival import Rival
from evaluator.settings import Precision
from problems.case import Case
from problems.function import function_of
from tools.profiling.profile_facts import shortened

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
    Precision.FP32: "IEEE single precision throughout: no TF32, no half-precision intermediates. "
    "Algorithms that round otherwise (Strassen, Winograd, split sums, fp64) are admitted: no "
    "element may be off by more than 64 times the largest error of PyTorch's own result in its row "
    "or column, nor the whole by more than 32 times",
    Precision.TF32: "single precision in memory; matrix products may use TF32 tensor cores",
    Precision.FP16: "inputs, parameters and outputs are fp16; accumulate sums in fp32",
    Precision.BF16: "inputs, parameters and outputs are bf16; accumulate sums in fp32",
}

FUNCTION_NOTE = (
    "each call has the dtypes that its arguments come in: no TF32 and no half precision where they "
    "are fp32, fp64 where they are fp64; accumulate 16-bit sums in fp32"
)

_RANDOM = re.compile(r"nn\.\w*Dropout|\bdropout|bernoulli|binomial|rand\w*_like", re.I)
"""What a module calls that draws random numbers in forward."""


@dataclass(frozen=True)
class Hardware:
    name: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Frame:
    """What a problem's prompts have in common, whatever happened in earlier turns."""

    reference: str
    """The problem's source with its sizes substituted."""
    hardware: Hardware
    hidden_sizes: bool = False
    """Other sizes are tried as well, and the prompt says so."""
    cases: tuple[Case, ...] = ()
    """What the problem is served at, the heaviest first; `reference` has the sizes of that one."""
    rival: Rival | None = None
    """What PyTorch itself reaches; None: nothing is said of it."""


@dataclass(frozen=True)
class Prompt:
    """A message, and what it spends its tokens on."""

    text: str
    ledger: PromptLedger


def render_prompt(
    config: RunConfig,
    frame: Frame,
    turn: int,
    feedback: Sequence[Section] = (),
    spent: Spent | None = None,
    *,
    shows_answer: bool = False,
) -> Prompt:
    """The prompt of one turn. `spent`: on the problem by all turns before this one.
    `shows_answer`: the feedback holds a correct kernel, so no example of the form is needed.
    """
    found = list(_pieces(config, frame, turn, spent or Spent(), shows_answer=shows_answer))
    for section in feedback:
        text = render("section", title=section.title, text=section.text)
        found.append(replace(section, text=text))
    # A piece ends where the next one begins.
    pieces = {piece.title: f"{piece.text}\n\n" for piece in found[:-1]}
    pieces |= {piece.title: f"{piece.text}\n" for piece in found[-1:]}
    ledger = PromptLedger.of(pieces, {piece.title: piece.left_out for piece in found})
    return Prompt("".join(pieces.values()), ledger)


def _pieces(
    config: RunConfig, frame: Frame, turn: int, spent: Spent, *, shows_answer: bool
) -> Iterator[Section]:
    """What stands before the feedback."""
    backend = config.backend
    function = function_of(frame.reference)
    yield Section("introduction", render("introduction", function=function))
    task = render(
        "task",
        backend=backend,
        backend_note=BACKEND_NOTES[backend],
        hardware=frame.hardware,
        precision=config.precision,
        precision_note=FUNCTION_NOTE if function else PRECISION_NOTES[config.precision],
        budget_note=budget_note(config, turn, spent),
        shows_answer=shows_answer,
    )
    yield Section("task", task)
    reference = frame.reference.strip("\n")
    yield Section("reference", render("reference", reference=reference))
    if frame.rival is not None and frame.rival.eager_us is not None:
        yield Section("rival", rival_words(frame.rival))
    contract = render(
        "contract",
        function=function,
        on_gpu=backend is not Backend.CPP,
        hidden_sizes=frame.hidden_sizes,
        cases=[f"{case.name}: weight {case.weight:.3g}" for case in frame.cases],
        varied_inputs=config.protocol == "refinery" and config.inputs == "varied",
        draws_random_numbers=_RANDOM.search(reference) is not None,
        strides=frame.rival.strides if frame.rival else (),
        shows_answer=shows_answer,
    )
    yield Section("contract", contract)
    form = "" if shows_answer else render(f"example_{backend}")
    yield Section("answer", render("answer", example=form))


def rival_words(rival: Rival) -> str:
    """What PyTorch itself reaches, which must have been timed."""
    return render("rival", rival=rival)


def budget_note(config: RunConfig, turn: int, spent: Spent) -> str:
    """Which attempt this is and what is left; nothing that a draft without feedback could not
    know."""
    schedule = schedule_of(config)
    if turn == 0 and config.shared_drafts:
        return "Your kernel is judged as it stands, and may be refined afterwards."
    if not config.shown_feedback or (turn == 0 and schedule.drafts > 1):
        return "You have one attempt; it is judged as it stands."
    left = schedule.turns - turn
    within = ", ".join(limits_left(config, spent))
    within = f", within {within} that remain" if within else ""
    if left == 1:
        return f"This is turn {turn}, the last one{within}. The best kernel of all turns counts."
    return f"This is turn {turn}; with it, at most {left} are left{within}. The best kernel counts."


def limits_left(config: RunConfig, spent: Spent) -> list[str]:
    limits = (
        ("${:.2f}", config.budget_usd, spent.priced_usd),
        ("{:,} tokens", config.budget_tokens, spent.tokens or 0),
        ("{:.0f} s", config.budget_seconds, spent.wall_seconds),
        ("{:.0f} s of the device", config.budget_device_seconds, spent.device_seconds),
    )
    return [words.format(max(0, most - used)) for words, most, used in limits if most is not None]


def render(name: str, **values: object) -> str:
    """The text of one template, without blank lines around it."""
    return _environment().get_template(f"{name}.md.j2").render(values).strip("\n")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "texts"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {"latency": figures.latency, "percent": figures.percent, "shortened": shortened}
    environment.filters |= filters
    return environment
