"""One line of `turns.jsonl`: a turn as other programs read it. Names are a contract."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.record.completion import Usage
from agent.record.prompt_ledger import PromptLedger
from evaluator.evaluation import Evaluation
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


class TurnRecord(BaseModel):
    """One completion and what became of it. Keyed (problem, sample, turn); written once."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True
    )

    schema_: int = Field(default=SCHEMA, alias="schema")
    suite: str
    problem: str
    problem_hash: str
    category: str = ""
    sample: int
    turn: int
    call: int
    """Running index over samples and turns of this problem: 0 .. budget-1."""
    strategy: Literal["refine", "sample"]
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
    prompt: str
    """Hash: `prompts/<hash>.txt`."""
    completion: str
    """Hash: `completions/<hash>.json`."""
    candidate: str | None
    """Hash: `kernels/<hash>.py`; None for `no_code`."""
    plan: str = ""
    """The kernel's own `# plan:` line."""
    parent: str | None = None
    """Hash of the kernel that the prompt asked to refine."""
    prompt_ledger: PromptLedger | None = None
    """What the prompt spent its tokens on; None in records made before there was one."""
    shuffled_with: ShuffledKernel | None = None
    """None: the prompt told of no other kernel."""
    finish_reason: str
    evaluation: Evaluation
    judged_with: str = ""
    """`problem.sample.turn`, where that turn's kernel was identical: its evaluation was taken over,
    and took no time. Empty: it was judged."""
    profile: Profile | None = None
    profiled_with: str = ""
    """The same for the profile."""
    profile_error: str = ""
    advice_scores: tuple[AdviceScore, ...] = ()
    """What became of the advice in this turn's prompt, by this turn's profile; empty where either
    is missing, or the advice was a control."""
    usage: Usage
    attempts: int = 1
    repeated: int = 0
    """Times this turn's in-flight work was done again after an interruption."""
    seconds: TurnSeconds
    created: str
    """UTC, ISO 8601."""
