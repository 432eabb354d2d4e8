"""What a run came to: for each problem the best kernel and the last one, and what both cost."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from pydantic import Field

from agent.record.completion import Usage
from agent.record.confirmation import Confirmation
from agent.record.turn import TurnRecord, TurnSeconds
from evaluator.evaluation import Evaluation
from evaluator.record import Record

SCHEMA = 1


class Stop(StrEnum):
    CALLS = "calls"
    TOKENS = "tokens"
    USD = "usd"
    SECONDS = "seconds"
    DEVICE_SECONDS = "device_seconds"
    UNPRICED = "unpriced"
    """A call came back without a known price while dollars were limited."""
    FINISHED = "finished"
    """The agent said that it was done."""
    INTERRUPTED = "interrupted"
    ANSWERS = "answers"
    """Prompts are written, and a later command finds their answers."""
    ERROR = "error"
    """Our machine or the model's provider failed; `ProblemResult.error` says how."""

    @property
    def is_passing(self) -> bool:
        """The same command again goes on with the problem."""
        return self in (Stop.INTERRUPTED, Stop.ANSWERS)


class Spent(Usage):
    """What billed completions and their evaluations came to, over all samples of one problem."""

    calls: int = 0
    """Billed completions."""
    cost_usd: float | None = 0.0
    """None as soon as one call has no known price."""
    priced_usd: float = 0.0
    """Sum over the calls whose price is known."""
    unpriced: int = 0
    """Calls without a known price."""
    seconds: TurnSeconds = TurnSeconds()

    @property
    def tokens(self) -> int | None:
        """Prompt and completion tokens; completion tokens include the reasoning. None: unknown."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens

    @property
    def wall_seconds(self) -> float:
        """Model, build, judge and profile seconds, summed over turns; `device` lies within."""
        seconds = self.seconds
        return seconds.model + seconds.build + seconds.judge + seconds.profile

    @property
    def device_seconds(self) -> float:
        """Profiling has the device to itself."""
        return self.seconds.device + self.seconds.profile


def charge_for(usage: Usage, seconds: TurnSeconds) -> Spent:
    priced, unpriced = usage.cost_usd or 0.0, int(usage.cost_usd is None)
    return Spent(**dict(usage), calls=1, priced_usd=priced, unpriced=unpriced, seconds=seconds)


def charge_for_wasted(usage: Usage) -> Spent:
    """Answers that were billed and could not be used: tokens and dollars, but no completion."""
    return charge_for(usage, TurnSeconds()).model_copy(update={"calls": 0})


def spent_on(turns: Iterable[TurnRecord]) -> Spent:
    return sum((charge_for(turn.usage, turn.seconds) for turn in turns), Spent())


class ProblemResult(Record):
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
    awaited: tuple[str, ...] = ()
    """Files that the answers to its prompts are to be in."""
    error: str = ""

    @property
    def verdict(self) -> Evaluation | None:
        """On the best kernel: the second one where there is one, else that of the search."""
        if self.confirmation is not None:
            return self.confirmation.evaluation
        return self.best.evaluation if self.best is not None else None


class RunResult(Record):
    """What became of a run; saved as `result.json`."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    run: Path
    """The run directory."""
    problems: tuple[ProblemResult, ...]
    """In the order of the configuration."""
    interrupted: bool = False

    @property
    def spent(self) -> Spent:
        return sum((problem.spent for problem in self.problems), Spent())

    @property
    def all_correct(self) -> bool:
        return all(problem.best is not None for problem in self.problems)

    @property
    def awaited(self) -> int:
        """How many prompts wait for their answers."""
        return sum(len(problem.awaited) for problem in self.problems)

    @property
    def failed(self) -> tuple[ProblemResult, ...]:
        return tuple(problem for problem in self.problems if problem.stop is Stop.ERROR)
