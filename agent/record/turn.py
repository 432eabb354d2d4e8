"""A turn: what it has so far, and at its end the line of `turns.jsonl` that other programs read.

Names are a contract. Texts are named by their hashes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent.config.run_config import Strategy
from agent.record.completion import Usage
from agent.record.prompt_ledger import PromptLedger
from evaluator.evaluation import Evaluation, Status
from tools.profiling.advice import AdviceScore
from tools.profiling.profile_report import Profile, ProfilerTier

SCHEMA = 1


class TurnSeconds(BaseModel):
    """Where a turn's wall time went."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: float = 0.0
    build: float = 0.0
    judge: float = 0.0
    profile: float = 0.0
    device: float = 0.0


class ShuffledKernel(BaseModel):
    """The kernel that a `shuffled:` component showed in place of the one to refine."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kernel: str
    """Hash."""
    turn: str = ""
    """`problem.sample.turn` of this run; empty for a specimen."""
    specimen: str = ""
    """The problem of the recorded kernel that comes with this program; empty for one of the run."""
    rung: ProfilerTier | None
    """None: it was not profiled, and only its distance to the speed of light was told."""


class Stage(IntEnum):
    """How far a turn has come."""

    PROMPTED = 0
    """Its prompt is rendered; the answer may be there as well."""
    EXTRACTED = 1
    """The kernel is taken out of the answer."""
    JUDGED = 2
    PROFILED = 3
    """Or the profiler failed."""


class Turn(BaseModel):
    """What one turn has so far. Frozen: each node of the graph returns a new one."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    prompt: str
    """Hash: `prompts/<hash>.txt`."""
    completion: str
    """Hash: `completions/<hash>.json`, where the answer is or will be."""
    parent: str | None = None
    """Hash of the kernel that the prompt asked to refine."""
    prompt_ledger: PromptLedger | None = None
    """What the prompt spent its tokens on; None in records made before there was one."""
    shuffled_with: ShuffledKernel | None = None
    """None: the prompt told of no other kernel."""
    candidate: str | None = None
    """Hash: `kernels/<hash>.py`; None before the answer is parsed, and for `no_code`."""
    plan: str = ""
    """The kernel's own `# plan:` line."""
    evaluation: Evaluation | None = None
    judged_with: str = ""
    """`problem.sample.turn`, where that turn's kernel was identical: its evaluation was taken over,
    and took no time. Empty: it was judged."""
    profile: Profile | None = None
    profiled_with: str = ""
    """The same for the profile."""
    profile_error: str = ""
    repeated: int = 0
    """Times this turn's in-flight work was done again after an interruption."""

    @property
    def stage(self) -> Stage:
        """The last stage that it has reached."""
        if self.profile is not None or self.profile_error:
            return Stage.PROFILED
        if self.evaluation is not None:
            return Stage.JUDGED
        return Stage.PROMPTED if self.candidate is None else Stage.EXTRACTED

    @property
    def is_correct(self) -> bool:
        """Its kernel was judged and is correct."""
        return self.evaluation is not None and self.evaluation.status is Status.CORRECT

    def updated(self, **news: object) -> Self:
        """The turn with `news`, which are checked like everything else that it holds."""
        return self.model_validate({**dict(self), **news})

    @model_validator(mode="after")
    def _payload_fits_the_stage(self) -> Self:
        """What a stage brings needs what the stages before it brought."""
        verdict = self.evaluation
        if verdict is not None and (self.candidate is None) != (verdict.status is Status.NO_CODE):
            raise ValueError(f"{verdict.status} with candidate {self.candidate}")
        if self.stage is Stage.PROFILED and not self.is_correct:
            raise ValueError("only a correct kernel is profiled")
        if self.profile is not None and self.profile_error:
            raise ValueError("a profile and the error of one that failed")
        if (self.judged_with and verdict is None) or (self.profiled_with and self.profile is None):
            raise ValueError("taken over from another turn, but not there")
        return self


class TurnRecord(Turn):
    """A turn that has ended: the completion, its outcome and the settings. Keyed (problem, sample,
    turn); written once."""

    model_config = ConfigDict(populate_by_name=True)

    schema_: int = Field(default=SCHEMA, alias="schema")
    suite: str
    problem: str
    problem_hash: str
    category: str = ""
    sample: int
    turn: int
    call: int
    """Running index over samples and turns of this problem: 0 .. budget-1."""
    strategy: Strategy
    feedback: str
    model: str
    """The model asked for."""
    model_answered: str
    temperature: float | None
    run_seed: int
    protocol: str
    precision: str
    size_class: str
    backend: str
    device: str
    """Name of the device that judged, e.g. `NVIDIA H200` or the CPU's name."""
    finish_reason: str
    evaluation: Evaluation
    advice_scores: tuple[AdviceScore, ...] = ()
    """What became of the advice in this turn's prompt, by this turn's profile; empty where either
    is missing, or the advice was a control."""
    usage: Usage
    attempts: int = 1
    seconds: TurnSeconds
    created: str
    """UTC, ISO 8601."""
