"""A turn: what it has so far, and at its end the line of `turns.jsonl` that other programs read.

Names are a contract. Texts are named by their hashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import Self

from pydantic import Field, ValidationError, model_validator

from agent.config.run_config import Strategy
from agent.record.completion import Sum, Usage, estimated_tokens
from evaluator.evaluation import Evaluation, Status
from evaluator.record import Record
from tools.profiling.profile_report import AdviceScore, Profile, ProfilerTier

SCHEMA = 1


class PromptLedger(Record):
    """What a prompt spends its tokens on. They are estimated (`estimated_tokens`), as the provider
    counts only whole messages."""

    tokens: dict[str, int]
    """By section, in their order: `introduction`, `task`, `reference`, `contract`, `answer`,
    then the headings of the feedback. They add up to the estimate for the prompt."""
    cut: dict[str, int] = Field(default_factory=dict)
    """Characters left out, of the sections that were too long."""

    @classmethod
    def of(cls, pieces: Mapping[str, str], cut: Mapping[str, int]) -> Self:
        """Of a prompt that is `pieces`, one after the other."""
        # Rounded at the end of each piece, so that the sum is that of the whole.
        ends = [estimated_tokens([text]) for text in accumulate(pieces.values())]
        tokens = [end - begin for begin, end in pairwise([0, *ends])]
        return cls(
            tokens=dict(zip(pieces, tokens, strict=True)),
            cut={name: left_out for name, left_out in cut.items() if left_out},
        )

    @property
    def total(self) -> int:
        return sum(self.tokens.values())


class TurnSeconds(Sum):
    model: float = 0.0
    build: float = 0.0
    judge: float = 0.0
    profile: float = 0.0
    device: float = 0.0


class ShuffledKernel(Record):
    """The kernel that a `shuffled:` component showed in place of the one to refine."""

    kernel: str
    """Hash."""
    turn: str = ""
    """`problem.sample.turn` of this run; empty for a fixture."""
    specimen: str = ""
    """The problem of the recorded kernel that comes with this program; empty for one of the run."""
    rung: ProfilerTier | None
    """None: it was not profiled, and only its distance to the speed of light was shown."""


class Turn(Record):
    """What one turn has so far. Frozen: each node of the graph returns a new one."""

    prompt: str
    """Hash: `prompts/<hash>.txt`."""
    completion: str
    """Hash: `completions/<hash>.json`, where the answer is or will be."""
    parent: str | None = None
    """Hash of the kernel that the prompt asked to refine."""
    prompt_ledger: PromptLedger | None = None
    shuffled_with: ShuffledKernel | None = None
    """None: the prompt showed no other kernel."""
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
    def is_profiled(self) -> bool:
        """Or the profiler failed."""
        return self.profile is not None or bool(self.profile_error)

    @property
    def is_correct(self) -> bool:
        return self.evaluation is not None and self.evaluation.status is Status.CORRECT

    def updated(self, **news: object) -> Self:
        return self.model_validate({**dict(self), **news})

    @model_validator(mode="after")
    def _payload_fits_the_stage(self) -> Self:
        """What a stage brings needs what the stages before it brought."""
        verdict = self.evaluation
        if verdict is not None and (self.candidate is None) != (verdict.status is Status.NO_CODE):
            raise ValueError(f"{verdict.status} with candidate {self.candidate}")
        if self.is_profiled and not self.is_correct:
            raise ValueError("only a correct kernel is profiled")
        if self.profile is not None and self.profile_error:
            raise ValueError("a profile and the error of one that failed")
        if (self.judged_with and verdict is None) or (self.profiled_with and self.profile is None):
            raise ValueError("taken over from another turn, but not there")
        return self


class Work(StrEnum):
    """Work that costs money or device time, and that a kill can interrupt."""

    MODEL = "model"
    JUDGE = "judge"
    PROFILE = "profile"


class PendingTurn(Turn):
    """The last line of `pending/<problem>.<sample>.<turn>.json`, which gets one more with each step
    and is removed once the turn is recorded."""

    wasted: Usage = Usage(cost_usd=0.0)
    """Billed for answers that could not be used before an error ended the asking."""
    profile_seconds: float = 0.0
    in_flight: Work | None = None
    """Begun and not known to have ended: found at the start of a command, it is done again."""


def read_pending_turn(lines: bytes) -> PendingTurn | None:
    """The last step that was written whole; None where a kill or a power cut left none. Then the
    turn begins anew: its prompt is rendered as before, and its answer is found by it."""
    for line in reversed(lines.splitlines()):
        try:
            return PendingTurn.model_validate_json(line)
        except ValidationError:
            continue
    return None


class TurnRecord(Turn):
    """A turn that has ended: the completion, its outcome and the settings. Keyed (problem, sample,
    turn); written once."""

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
