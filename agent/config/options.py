"""What a user asked for, before `auto` and defaults are filled in: every setting may be unset."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from agent.config.feedback_spec import Feedback
from agent.config.run_config import Strategy
from agent.config.settings_file import ALIASES, Scalar, nearest, read_settings
from evaluator.evaluation import (
    AuditSetting,
    BaselineName,
    Precision,
    Protocol,
    Requirement,
    audit_setting,
)
from evaluator.hardware.device_choice import FORMS, is_device_choice
from problems.errors import UsageError

_OPTION_OF = {key: option for option, key in ALIASES.items()}


def _device_name(name: str) -> str:
    if is_device_choice(name):
        return name
    raise ValueError(f"{name!r} is not one of {FORMS}")


def _model_arguments(arguments: dict[str, Scalar]) -> dict[str, Scalar]:
    for key in arguments:
        if re.search(r"api_?key|secret|password|credential", key, re.IGNORECASE):
            raise ValueError(
                f"{key} would be written into the run's record; set the provider's environment"
                " variable instead (python -m agent.doctor names it)"
            )
    return arguments


def _several(value: object) -> object:
    return [value] if isinstance(value, str | int) else value


def _audit(value: object) -> object:
    """`--audit` is true and `--no-audit` false."""
    return audit_setting(value) if isinstance(value, bool) else value


Levels = Annotated[tuple[int, ...], BeforeValidator(_several)]
Names = Annotated[tuple[str, ...], BeforeValidator(_several)]
Baselines = Annotated[tuple[BaselineName, ...], BeforeValidator(_several)]


class RunOptions(BaseModel):
    """The settings that were given, in any layer; None is unset. Keys are those of `RunConfig`.

    `levels`, `filter` and `limit` narrow `problems` (or the suite) and end there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: Strategy | None = None
    feedback: Feedback | None = None
    problems: Names | None = None
    levels: Levels | None = None
    filter: str | None = None
    limit: int | None = Field(default=None, ge=1)
    suite: Path | None = None
    model: str | None = None
    model_args: Annotated[dict[str, Scalar], AfterValidator(_model_arguments)] | None = None
    backend: Literal["auto", "cuda", "triton", "cpp"] | None = None
    device: Annotated[str, AfterValidator(_device_name)] | None = None
    executor: Literal["local", "ray"] | None = None
    ray_address: str | None = None
    precision: Precision | None = None
    protocol: Protocol | None = None
    inputs: Literal["varied", "recipe"] | None = None
    hardware: str | None = None
    examples: Literal["none", "one", "few"] | None = None
    prompts: Path | None = None
    prompts_hash: str | None = None
    """Of a saved configuration; no option of its own."""
    budget: int | None = Field(default=None, ge=1)
    budget_usd: float | None = Field(default=None, gt=0)
    budget_tokens: int | None = Field(default=None, ge=1)
    budget_seconds: float | None = Field(default=None, gt=0)
    allow_unpriced: bool | None = None
    temperature: float | None = Field(default=None, ge=0)
    seed: int | None = None
    start_from: Literal["last", "best"] | None = None
    history: Literal["last", "all"] | None = None
    stop_early: int | None = Field(default=None, ge=1)
    stop_near_sol: float | None = Field(default=None, gt=0, le=1)
    confirm: int | None = Field(default=None, ge=0)
    baselines: Baselines | None = None
    timing_seconds: float | None = Field(default=None, gt=0)
    keep_profiles: bool | None = None
    audit: Annotated[AuditSetting, BeforeValidator(_audit)] | None = None
    require: Requirement | None = None
    isolation: Literal["available", "strict"] | None = None
    workers: int | None = Field(default=None, ge=1)
    output: Path | None = None

    def given(self) -> dict[str, object]:
        """Only what was set."""
        return {key: value for key, value in self if value is not None}


def merge_layers(files_and_items: Sequence[str], flags: Mapping[str, object]) -> RunOptions:
    """`-c` files < `-c` items < flags, checked; an unset flag (None or empty) overrides nothing.

    Raises `UsageError`, one line that names the option or key and what it takes.
    """
    settings = read_settings(files_and_items, RunOptions.model_fields)
    for key, value in flags.items():
        if value is None or (isinstance(value, list | tuple | dict) and not value):
            continue
        before = settings.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        settings[key] = {**before, **value} if both else value  # type: ignore[dict-item]
    return check_options(settings)


def check_options(settings: Mapping[str, object]) -> RunOptions:
    """`settings` as `RunOptions`; raises `UsageError` for an unknown key or a value it can't be."""
    for key in settings:
        if key not in RunOptions.model_fields:
            raise UsageError(f"unknown option {key!r}: {nearest(key, RunOptions.model_fields)}")
    try:
        return RunOptions.model_validate(dict(settings))
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        text = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
        if first["type"] != "value_error":
            text = f"{first['input']!r} {text}"
        option = _OPTION_OF.get(key, key).replace("_", "-")
        raise UsageError(f"--{option}: {text}") from error
