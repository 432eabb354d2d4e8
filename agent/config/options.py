"""What a user asked for, before `auto` and the set of problems are resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from agent.config.run_config import RunSettings
from agent.config.settings_file import nearest, parse_assignments, read_settings
from evaluator.command.option import CommandOption, option_name, options_of, validated
from evaluator.hardware.device_choice import FORMS, is_device_choice
from problems.errors import UsageError


def _device_name(name: str) -> str:
    if is_device_choice(name):
        return name
    raise ValueError(f"{name!r} is not one of {FORMS}")


def _several(value: object) -> object:
    return [value] if isinstance(value, str | int) else value


class RunOptions(RunSettings):
    """The options of `kernel-refinery run`; `model_fields_set` says which were given.

    `levels`, `filter` and `limit` narrow `problems` (or the suite) and end there.
    """

    problems: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(_several),
        CommandOption(
            "A problem's id, or a file in KernelBench's format; repeatable.",
            "ID|FILE",
            names=("--problem",),
            repeats=True,
            default="a demo set of three",
        ),
    ] = None
    levels: Annotated[
        tuple[int, ...] | None,
        BeforeValidator(_several),
        CommandOption(
            "Only problems of this level; repeatable.", "N", names=("--level",), repeats=True
        ),
    ] = None
    filter: Annotated[
        str | None, CommandOption("Only problems whose id or category matches.", "REGEX")
    ] = None
    limit: Annotated[int | None, Field(ge=1), CommandOption("At most this many problems.", "N")] = (
        None
    )
    backend: Annotated[
        Literal["auto", "cuda", "triton", "cpp"],
        CommandOption(
            "The language of the kernels.",
            "auto|cuda|triton|cpp",
            default="auto: cuda on a GPU, cpp on a CPU",
        ),
    ] = "auto"
    rival: Annotated[
        Literal["auto", "none", "eager", "compile"],
        CommandOption(
            "What PyTorch reaches on each problem, measured once and shown in every prompt: the "
            "time of eager and its kernels, with compile also the time of torch.compile.",
            "auto|none|eager|compile",
            default="auto: compile on a GPU, none on a CPU",
        ),
    ] = "auto"
    device: Annotated[
        str,
        AfterValidator(_device_name),
        CommandOption(
            "Where kernels are judged; several GPUs must be of one kind.",
            "auto|cpu|cuda|cuda:N|cuda:N,M|all",
            default="auto: the first GPU if there is one",
        ),
    ] = "auto"
    workers: Annotated[
        int | None,
        Field(ge=1),
        CommandOption(
            "Concurrent turns.",
            "N",
            names=("--workers", "-w"),
            default="1 on a CPU, up to 8 for each GPU",
        ),
    ] = None
    output: Annotated[
        Path | None,
        CommandOption(
            "The run directory.",
            "DIR",
            names=("--output", "-o"),
            default="runs/NAME, the name made from the settings",
        ),
    ] = None

    def given(self) -> dict[str, object]:
        return {key: value for key, value in self if key in self.model_fields_set}


NAMES = {key: key for key in RunOptions.model_fields} | {
    option_name(RunOptions, key).removeprefix("--").replace("-", "_"): key
    for key in options_of(RunOptions)
}
"""What a settings file may call a setting: its key, or its option's own name."""


def merge_layers(
    files_and_items: Sequence[str], flags: Mapping[str, object], forked: Mapping[str, object] = {}
) -> RunOptions:
    """`forked`, the settings of another run < `-c` files < `-c` items < flags, checked; an unset
    flag (None or empty) overrides nothing.

    Raises `UsageError`, one line that names the option or key and what it takes.
    """
    settings = read_settings(files_and_items, NAMES, forked)
    for key, value in flags.items():
        if value is None or (isinstance(value, list | tuple | dict) and not value):
            continue
        if key == "model_args" and isinstance(value, list):
            value = parse_assignments(value, "--model-args")
        before = settings.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        settings[key] = {**before, **value} if both else value  # type: ignore[dict-item]
    return check_options(settings)


def check_options(settings: Mapping[str, object]) -> RunOptions:
    """`settings` as `RunOptions`; None is not given.

    Raises `UsageError` for an unknown key or a value it can't be.
    """
    for key in settings:
        if key not in RunOptions.model_fields:
            raise UsageError(f"unknown option {key!r}: {nearest(key, RunOptions.model_fields)}")
    return validated(RunOptions, {key: v for key, v in settings.items() if v is not None})
