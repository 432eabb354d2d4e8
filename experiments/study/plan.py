"""What a study will do and what it asks, as PLAN.yaml says before there is a result."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from agent.config.feedback_spec import Feedback, FeedbackSpec
from agent.config.options import NAMES, RunOptions, check_options
from agent.config.run_config import Strategy
from agent.config.settings_file import Scalar, merge
from evaluator.record import Record
from experiments.analysis.equal_budget import NOUNS, Currency
from experiments.analysis.measures import measure_of
from problems.errors import UsageError

OF_A_CELL = frozenset(
    {"strategy", "feedback", "model", "model_args", "temperature", "seed", "output"}
)
"""Settings that a plan gives for each cell, and not for all of them."""

_T = TypeVar("_T")


def _outcome(key: str) -> str:
    measure_of(key)
    return key


Outcome = Annotated[str, AfterValidator(_outcome)]
"""A key of `experiments.analysis.measures.measure_of`."""


class ModelChoice(Record):
    model: str
    args: dict[str, Scalar] = Field(default_factory=dict)
    temperature: float | None = None
    name: str = ""
    """What tables and folders call it; empty: the model's own name."""

    @property
    def label(self) -> str:
        return self.name or self.model.rpartition("/")[2]


class Condition(Record):
    """How the next prompt comes about: `sample`, `refine G+E+P`, `refine none` or `hybrid G+E`;
    `agent G+E+P` is that of sessions."""

    strategy: Strategy
    feedback: Feedback = FeedbackSpec()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises `ValueError` for anything else."""
        strategy, _, feedback = text.strip().partition(" ")
        if strategy == Strategy.SAMPLE and feedback:
            raise ValueError(f"{text!r}: sample has no feedback; write 'sample'")
        if strategy not in set(Strategy):
            others = "'refine', 'hybrid' or 'agent'"
            raise ValueError(f"{text!r} is not 'sample', or {others} with its feedback")
        if strategy != Strategy.SAMPLE and not feedback:
            raise ValueError(f"{text!r}: say which feedback, such as '{strategy} G+E+P'")
        return cls(
            strategy=Strategy(strategy),
            feedback=FeedbackSpec.parse(feedback) if feedback else FeedbackSpec(),
        )

    @property
    def is_sample(self) -> bool:
        return self.strategy is Strategy.SAMPLE

    def __str__(self) -> str:
        return str(self.strategy) if self.is_sample else f"{self.strategy} {self.feedback}"


class Contrast(Record):
    """One question: is condition `b` better than `a` by this outcome?"""

    a: str
    b: str
    outcome: Outcome
    model: str = ""
    """Of which model; empty: each model is a question of its own."""
    at: dict[Currency, Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict, max_length=1, exclude_if=lambda at: not at
    )
    """The budget of a problem at which it is read, in one currency; empty: after the last call."""
    least: float | None = Field(default=None, gt=1, exclude_if=lambda least: least is None)
    """The smallest ratio of the outcomes that would matter, such as 1.2."""

    @property
    def text(self) -> str:
        """`fast_1 at 50,000 tokens`: what is compared."""
        at = "".join(f" at {amount:,g} {NOUNS[name]}" for name, amount in self.at.items())
        return f"{self.outcome}{at}"


def _conditions(value: object) -> object:
    if not isinstance(value, list | tuple):
        return value
    return [Condition.parse(each) if isinstance(each, str) else each for each in value]


def _models(value: object) -> object:
    if not isinstance(value, list | tuple):
        return value
    return [{"model": each} if isinstance(each, str) else each for each in value]


def _distinct(values: tuple[_T, ...]) -> tuple[_T, ...]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value} is there twice")
    return values


class Plan(Record):
    """A whole study. Its cells are models x conditions x seeds; each is one run."""

    question: str
    settings: dict[str, object] = Field(default_factory=dict)
    """Of every cell: options of `agent.run` under their names in a `config.yaml`."""
    models: Annotated[tuple[ModelChoice, ...], BeforeValidator(_models), Field(min_length=1)] = (
        ModelChoice(model="offline/tuner"),
    )
    conditions: Annotated[
        tuple[Condition, ...],
        BeforeValidator(_conditions),
        AfterValidator(_distinct),
        Field(min_length=1),
    ]
    seeds: Annotated[tuple[int, ...], AfterValidator(_distinct), Field(min_length=1)] = (0,)
    share: Literal["drafts"] | None = Field(default=None, exclude_if=lambda share: share is None)
    """drafts: a first draft is one answer in all cells of a model and seed, its prompt does not
    tell a strategy, and identical kernels are judged once."""
    groups: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, exclude_if=lambda groups: not groups
    )
    """Problems by the name of their group: contrasts are shown for each, and for all others."""
    cell_usd: float | None = Field(default=None, gt=0)
    """No problem of a cell is begun once its calls have cost as much."""
    total_usd: float | None = Field(default=None, gt=0)
    contrasts: tuple[Contrast, ...] = ()
    """The questions. Their chances are corrected for their number (Holm)."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        names, labels = {str(each) for each in self.conditions}, [m.label for m in self.models]
        _distinct(tuple(labels))
        for contrast in self.contrasts:
            for name in (contrast.a, contrast.b):
                if name not in names:
                    raise ValueError(f"contrast: {name!r} is none of {', '.join(sorted(names))}")
            if contrast.model and contrast.model not in labels:
                raise ValueError(f"contrast: {contrast.model!r} is none of {', '.join(labels)}")
        return self

    def options(self, model: ModelChoice, condition: Condition, seed: int) -> RunOptions:
        """What `agent.run` is asked for one cell. Raises `UsageError`."""
        given: dict[str, object] = {}
        merge(given, self.settings, NAMES, "settings")
        if twice := sorted(OF_A_CELL & given.keys()):
            raise UsageError(f"settings: {twice[0]} belongs to models, conditions and seeds")
        cell: dict[str, object] = {
            "strategy": condition.strategy,
            "model": model.model,
            "model_args": model.args,
            "temperature": model.temperature,
            "seed": seed,
            "shared_drafts": self.share is not None,
        }
        if not condition.is_sample:
            cell["feedback"] = condition.feedback
        return check_options({**given, **cell})

    @property
    def hash(self) -> str:
        """SHA-256 of all that it says, first 16 hex digits."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_plan(path: Path) -> Plan:
    """The plan in a YAML file. Raises `UsageError`, one line that names the key."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"there is no plan {path}; docs/studies.md shows one") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path} can't be read ({' '.join(str(error).split())})") from error
    if not isinstance(content, dict):
        raise UsageError(f"{path} holds no plan; docs/studies.md shows one")
    try:
        return Plan.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        reason = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{path}: {where + ': ' if where else ''}{reason}") from error
