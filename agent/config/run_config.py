"""The resolved configuration of a run: complete, frozen, saved as `config.yaml`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.config.feedback_spec import Feedback, FeedbackSpec
from evaluator.evaluation import (
    AuditSetting,
    Backend,
    BaselineName,
    Precision,
    Protocol,
    Requirement,
)


class Strategy(StrEnum):
    """What the next prompt remembers."""

    REFINE = "refine"
    SAMPLE = "sample"


class RunConfig(BaseModel):
    """Everything that a run is made with, defaults filled in and `auto` resolved."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    strategy: Strategy = Strategy.REFINE
    feedback: Feedback = FeedbackSpec.parse("G+E+P")
    problems: tuple[str, ...] = ()
    """Ids, resolved from --problem, --level, --filter and --limit."""
    suite: Path | None = None
    """None: our own suite."""
    model: str = "offline/tuner"
    model_args: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    backend: Backend = Backend.CPP
    device: str = "cpu"
    """`cpu`, `cuda:N`, or several GPUs of one kind: `cuda:0,cuda:3`. Which ones does not matter to
    what a run is, only the kind."""
    executor: Literal["local", "ray"] = "local"
    """Who judges: processes on this machine, or those of a Ray cluster."""
    ray_address: str | None = None
    """Of the cluster; None: with `ray`, one of our own on this machine."""
    precision: Precision = Precision.FP32
    protocol: Protocol = "refinery"
    inputs: Literal["varied", "recipe"] = "varied"
    hardware: str | None = None
    """Named device for the prompt's hardware block; None: the device at hand."""
    examples: Literal["none", "one", "few"] = "none"
    """Whole kernel files that the prompt shows, beside the short one that shows the form."""
    prompts: Path | None = None
    """A folder with templates of the user's own; None: ours."""
    prompts_hash: str = ""
    """Digest of the user's own templates; empty without any."""
    budget: int = Field(default=10, ge=1)
    """Billed completions per problem, the same for both strategies."""
    budget_usd: float | None = None
    budget_tokens: int | None = None
    budget_seconds: float | None = None
    """Per problem, like `budget`; the first one reached stops that problem."""
    allow_unpriced: bool = False
    temperature: float | None = None
    seed: int = 0
    start_from: Literal["last", "best"] = "best"
    """`--from`: which kernel is refined."""
    history: Literal["last", "all"] = "all"
    stop_early: int | None = None
    """`--stop-early N`: end a problem after N turns without a better kernel. Off by default."""
    stop_near_sol: float | None = None
    """`--stop-near-sol SHARE`: end a problem once its best kernel reaches that share (0 to 1) of
    the speed of light. Off by default."""
    confirm: int = Field(default=3, ge=0)
    """`--confirm N`: so many of the best kernels are judged again until one holds; 0: none is."""
    baselines: tuple[BaselineName, ...] = (BaselineName.EAGER,)
    timing_seconds: float = 2.0
    keep_profiles: bool = False
    """`--keep-profiles`: the profiler's own report stays in `profiles/<hash>/`."""
    audit: AuditSetting = "auto"
    require: Requirement = "any"
    isolation: Literal["available", "strict"] = "available"
    """`--require-isolation`: with `strict` nothing is run unless every wall stands."""
    workers: int = Field(default=1, ge=1)
    output: Path
    """The run directory."""

    @property
    def shown_feedback(self) -> FeedbackSpec:
        """What prompts hold: nothing with `sample`, whatever `feedback` says."""
        return FeedbackSpec() if self.strategy is Strategy.SAMPLE else self.feedback

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that judge: each is `cpu` or `cuda:N`."""
        return tuple(self.device.split(","))

    @property
    def first_device(self) -> str:
        """The one that stands for all where their kind is asked for."""
        return self.devices[0]
