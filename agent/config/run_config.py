"""What a run is made with: its settings as they are declared, and complete as `config.yaml`."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from agent.config.feedback_spec import Feedback, FeedbackSpec
from agent.config.settings_file import Scalar
from evaluator.command.option import CommandOption
from evaluator.evaluation import Backend
from evaluator.settings import JudgeOptions
from problems.kernelbench_x import SUITE_HELP


class Strategy(StrEnum):
    """What the next prompt remembers."""

    REFINE = "refine"
    SAMPLE = "sample"
    HYBRID = "hybrid"
    AGENT = "agent"
    """A session: a coding agent decides what it tries, and is told what refine is."""


def _model_arguments(arguments: dict[str, Scalar]) -> dict[str, Scalar]:
    for key in arguments:
        if re.search(r"api_?key|secret|password|credential", key, re.IGNORECASE):
            raise ValueError(
                f"{key} would be written into the run's record; set the provider's environment"
                " variable instead (kernel-refinery doctor names it)"
            )
    return arguments


class RunSettings(JudgeOptions):
    """Every setting that means the same before and after a command is resolved.

    A new option of `kernel-refinery run` is a new field here, and nothing else.
    """

    strategy: Annotated[
        Strategy,
        CommandOption(
            "refine: each prompt builds on earlier turns. sample: independent drafts. hybrid: "
            "independent drafts, then the best of them are refined.",
            "refine|sample|hybrid",
        ),
    ] = Strategy.REFINE
    feedback: Annotated[
        Feedback,
        CommandOption(
            "What a prompt that refines shows, joined by +: G (the kernel), E (execution), P (the "
            "profile, with A and S), A (advice), S (distance to the speed of light), R (raw "
            "metrics). Controls: placebo:P, shuffled:P, also of A, S, R.",
            "G+E+P|none",
        ),
    ] = FeedbackSpec.parse("G+E+P")
    suite: Annotated[
        Path | None,
        CommandOption(SUITE_HELP, "DIR", default="our own"),
    ] = None
    model: Annotated[
        str,
        CommandOption(
            "LiteLLM's name of a model, replay/RUN or relay/FOLDER.",
            "PROVIDER/MODEL",
            names=("--model", "-m"),
        ),
    ] = "offline/tuner"
    model_args: Annotated[
        dict[str, Scalar],
        AfterValidator(_model_arguments),
        CommandOption(
            "An argument for the model: api_base, top_p, max_tokens, reasoning_effort, ...; "
            "repeatable.",
            "KEY=VALUE",
            repeats=True,
        ),
    ] = Field(default_factory=dict)
    fork: Annotated[
        str | None,
        CommandOption(
            "Begin with the turns before TURN of that run, which count for the budget, and with "
            "its settings; options given beside it replace these.",
            "RUN@TURN",
        ),
    ] = None
    shared_drafts: bool = False
    """The first prompt does not tell which strategy it belongs to: a study gives one answer to
    it in all cells."""
    budget: Annotated[
        int,
        CommandOption("Billed completions per problem. Of a session: evaluations.", "N"),
    ] = Field(default=10, ge=1)
    drafts: Annotated[
        int | None,
        Field(ge=1),
        CommandOption(
            "Of hybrid: the independent drafts that come first.",
            "N",
            default="half of --budget, rounded up",
        ),
    ] = None
    """Like the next one: None with every other strategy."""
    refine_best: Annotated[
        int | None,
        Field(ge=1),
        CommandOption(
            "Of hybrid: the drafts that are refined, the best ones, with the rest of --budget.",
            "N",
            default="2; 1 if there is one draft",
        ),
    ] = None
    budget_usd: Annotated[
        float | None,
        Field(gt=0),
        CommandOption("Per problem: no further call once this much is spent.", "USD"),
    ] = None
    """Like the next three: the first limit that is reached stops a problem."""
    budget_tokens: Annotated[
        int | None,
        Field(ge=1),
        CommandOption("Per problem: no further call once this many tokens are billed.", "N"),
    ] = None
    budget_seconds: Annotated[
        float | None,
        Field(gt=0),
        CommandOption("Per problem: no further call once this much wall time is spent.", "S"),
    ] = None
    budget_device_seconds: Annotated[
        float | None,
        Field(gt=0),
        CommandOption("Per problem: nothing more is judged once the device was busy so long.", "S"),
    ] = None
    budget_profiles: Annotated[
        int, CommandOption("Per problem: so often the agent may have a kernel profiled.", "N")
    ] = Field(default=3, ge=0)
    """Of a session alone: a run profiles each correct kernel, if its feedback needs it."""
    allow_unpriced: Annotated[
        bool,
        CommandOption("Run a model of unknown price although --budget-usd cannot be kept."),
    ] = False
    temperature: Annotated[
        float | None,
        Field(ge=0),
        CommandOption("Sampling temperature.", "T", default="unset: the model's own"),
    ] = None
    seed: Annotated[int, CommandOption("Seed of the run.", "N")] = 0
    start_from: Annotated[
        Literal["last", "best"],
        CommandOption("Which kernel is refined.", "last|best"),
    ] = "best"
    history: Annotated[
        Literal["last", "all"],
        CommandOption("Which earlier turns a prompt shows.", "last|all"),
    ] = "all"
    design_limit: Annotated[
        bool,
        CommandOption(
            "S, and with it P, says how far tuning gets the kernel as it is designed.",
            names=("--design-limit/--no-design-limit",),
        ),
    ] = True
    confirm: Annotated[
        int,
        CommandOption(
            "Judge the best kernel again when a problem ends; if it fails, the next best, at "
            "most N. 0: off.",
            "N",
        ),
    ] = Field(default=3, ge=0)
    search_cases: Annotated[
        int,
        CommandOption(
            "Of a problem's CASES: how many are timed in each turn, the heaviest. Two others "
            "are verified, and the second verdict times all.",
            "N",
        ),
    ] = Field(default=3, ge=1)
    executor: Annotated[
        Literal["local", "ray"],
        CommandOption(
            "Who judges: processes on this machine, or the GPUs of a Ray cluster.", "local|ray"
        ),
    ] = "local"
    ray_address: Annotated[
        str | None,
        CommandOption(
            "The cluster for --executor ray; auto: the one that runs on this machine.",
            "HOST:PORT|auto",
            default="a cluster of our own, here, on loopback",
        ),
    ] = None


class RunConfig(RunSettings):
    """Everything that a run is made with, defaults filled in and `auto` resolved."""

    problems: tuple[str, ...] = ()
    """Ids, resolved from --problem, --level, --filter and --limit."""
    backend: Backend = Backend.CPP
    rival: Literal["none", "eager", "compile"] = "none"
    """What prompts show of PyTorch's own times and kernels."""
    device: str = "cpu"
    """`cpu`, `cuda:N`, or several GPUs of one kind: `cuda:0,cuda:3`. Which ones does not matter to
    what a run is, only the kind."""
    workers: int = Field(default=1, ge=1)
    output: Path

    @property
    def shown_feedback(self) -> FeedbackSpec:
        """What prompts hold: nothing with `sample`, whatever `feedback` says."""
        return FeedbackSpec() if self.strategy is Strategy.SAMPLE else self.feedback

    @property
    def is_in_rounds(self) -> bool:
        """A command takes the answers that are there, writes the prompts that are due, and ends."""
        return self.model.startswith("relay/") and self.model_args.get("wait") is not None

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that judge: each is `cpu` or `cuda:N`."""
        return tuple(self.device.split(","))

    @property
    def first_device(self) -> str:
        """The one that stands for all where their kind is asked for."""
        return self.devices[0]
