"""What a run came to: for each problem the best kernel and the last one, and what both cost."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from agent.record.confirmation import Confirmation
from agent.record.turn import TurnRecord, TurnSeconds
from evaluator.evaluation import Evaluation

SCHEMA = 1


class Stop(StrEnum):
    """Why a problem got no further turn."""

    CALLS = "calls"
    TOKENS = "tokens"
    USD = "usd"
    SECONDS = "seconds"
    UNPRICED = "unpriced"
    """A call came back without a known price while dollars were limited."""
    EARLY = "early"
    """`--stop-early`: that many turns without a better kernel."""
    NEAR_SOL = "near_sol"
    """`--stop-near-sol`: the best kernel is that close to the speed of light."""
    INTERRUPTED = "interrupted"
    ERROR = "error"
    """Our machine or the model's provider failed; `ProblemResult.error` says how."""


class Spent(BaseModel):
    """What billed completions and their evaluations came to, over all samples of one problem."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    calls: int = 0
    """Billed completions."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = 0.0
    """None as soon as one call has no known price."""
    priced_usd: float = 0.0
    """Sum over the calls whose price is known."""
    unpriced: int = 0
    """Calls without a known price."""
    seconds: TurnSeconds = TurnSeconds()

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens; completion tokens include the reasoning."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def wall_seconds(self) -> float:
        """Model, build, judge and profile seconds, summed over turns; `device` lies within."""
        seconds = self.seconds
        return seconds.model + seconds.build + seconds.judge + seconds.profile

    def __add__(self, other: Spent) -> Spent:
        """Both together."""
        costs = (self.cost_usd, other.cost_usd)
        mine, theirs = self.seconds, other.seconds
        return Spent(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
            priced_usd=self.priced_usd + other.priced_usd,
            unpriced=self.unpriced + other.unpriced,
            seconds=TurnSeconds(
                model=mine.model + theirs.model,
                build=mine.build + theirs.build,
                judge=mine.judge + theirs.judge,
                profile=mine.profile + theirs.profile,
                device=mine.device + theirs.device,
            ),
        )


class ProblemResult(BaseModel):
    """What became of one problem."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    problem: str
    best: TurnRecord | None
    """The correct kernel with the highest speedup over eager that was not struck; the earliest
    where they tie. Its record holds the figures of the search."""
    confirmation: Confirmation | None = None
    """The second verdict on the best kernel; None where none was asked for, or the run was
    interrupted before."""
    struck: tuple[Confirmation, ...] = ()
    """Kernels that failed the second time: they are no best kernel any more."""
    last: TurnRecord | None
    """The turn with the highest call index, correct or not."""
    best_path: Path | None
    """`best/<problem>.py` in the run directory; None where no kernel is correct."""
    turns: int
    """Turns recorded, over all samples."""
    correct: int
    """Turns whose kernel is correct."""
    spent: Spent
    stop: Stop
    error: str = ""

    @property
    def verdict(self) -> Evaluation | None:
        """On the best kernel: the second one where there is one, else that of the search."""
        if self.confirmation is not None:
            return self.confirmation.evaluation
        return self.best.evaluation if self.best is not None else None


class RunResult(BaseModel):
    """What became of a run; saved as `result.json`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True
    )

    schema_: int = Field(default=SCHEMA, alias="schema")
    run: Path
    """The run directory."""
    problems: tuple[ProblemResult, ...]
    """In the order of the configuration."""
    interrupted: bool = False

    @property
    def spent(self) -> Spent:
        """Over all problems."""
        return sum((problem.spent for problem in self.problems), Spent())

    @property
    def all_correct(self) -> bool:
        """Every problem has a correct kernel."""
        return all(problem.best is not None for problem in self.problems)

    @property
    def failed(self) -> tuple[ProblemResult, ...]:
        """The problems that ended with an error of ours or the provider's."""
        return tuple(problem for problem in self.problems if problem.stop is Stop.ERROR)
