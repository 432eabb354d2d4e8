"""What a run reports: small frozen events, in the order in which things happen."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from agent.record.confirmation import Confirmation
from agent.record.result import ProblemResult, Spent
from agent.record.turn import TurnRecord
from evaluator.evaluation import Evaluation


@dataclass(frozen=True)
class Event:
    """Base of all events: every one is about one problem."""

    problem: str


@dataclass(frozen=True)
class ProblemStarted(Event):
    """A problem's turns begin, or go on after an interruption. Comes before any of its turns."""

    recorded: int
    """Turns that an earlier command has recorded already."""
    best: TurnRecord | None
    """The best of those."""
    spent: Spent
    """What those came to."""


@dataclass(frozen=True)
class TurnEvent(Event):
    sample: int
    turn: int


@dataclass(frozen=True)
class TurnStarted(TurnEvent):
    """A prompt is about to be sent to the model."""

    call: int
    """Running index over samples and turns of this problem."""


@dataclass(frozen=True)
class ModelAnswered(TurnEvent):
    """The model answered (or its answer of before an interruption was found on disk)."""


@dataclass(frozen=True)
class Evaluated(TurnEvent):
    evaluation: Evaluation


@dataclass(frozen=True)
class Profiled(TurnEvent):
    """The profiler has finished, or failed, which costs the turn its profile and nothing else."""

    error: str


@dataclass(frozen=True)
class TurnRecorded(Event):
    """The turn is on disk; sums and the best kernel may have moved."""

    record: TurnRecord
    is_best: bool
    """This turn's kernel is the best of its problem so far."""
    spent: Spent
    """Of this problem so far."""


@dataclass(frozen=True)
class Waiting(TurnEvent):
    """Something failed here or at the model's provider and is tried again, or a person's
    answer is waited for (`relay/`)."""

    reason: str


@dataclass(frozen=True)
class JudgingAgain(Event):
    """The turns have ended, and the best kernel is judged once more."""


@dataclass(frozen=True)
class JudgedAgain(Event):
    confirmation: Confirmation


@dataclass(frozen=True)
class ProblemFinished(Event):
    """A problem's last turn is recorded, its budget is spent, or it ended with an error."""

    result: ProblemResult


class Display:
    """The base of all views: it shows no progress, and prints messages on stderr."""

    def notice(self, event: Event) -> None:
        """Take note of what happens; must return at once. `drive` calls it from its worker threads,
        one call at a time."""

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Give the terminal back; may be called more than once."""
