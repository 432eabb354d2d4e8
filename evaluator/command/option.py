"""Settings that a command line takes, each declared once: at the field of a model.

class Options(BaseModel):
    budget: Annotated[int, CommandOption("Completions per problem.", "N")] = 10

@takes_options(Options)
def run(given: dict[str, object]) -> None:
    options = validated(Options, given)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from problems.errors import UsageError

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class CommandOption:
    help: str
    metavar: str = ""
    """What follows the option; empty: it is a flag."""
    names: tuple[str, ...] = ()
    """Empty: `--` and the field's name. A flag that has an opposite is `--yes/--no`."""
    flags: tuple[object, object] = (True, False)
    """The values that a flag and its opposite stand for."""
    repeats: bool = False
    default: str = ""
    """What the help says where the option is left out. Empty: the field's default."""


def options_of(model: type[BaseModel]) -> dict[str, CommandOption]:
    """By field, what a command line takes; fields that a subclass declares come first."""
    return {
        name: option
        for of_class in model.__mro__
        for name in inspect.get_annotations(of_class)
        if name in model.model_fields
        for option in model.model_fields[name].metadata
        if isinstance(option, CommandOption)
    }


def option_name(model: type[BaseModel], field: str) -> str:
    option = options_of(model).get(field)
    named = option.names[0] if option is not None and option.names else f"--{field}"
    return named.partition("/")[0].replace("_", "-")


def validated(model: type[Model], given: Mapping[str, object]) -> Model:
    """`given` as a model; raises `UsageError`, one line that names the option."""
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        text = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
        if first["type"] != "value_error":
            text = f"{first['input']!r} {text}"
        raise UsageError(f"{option_name(model, str(first['loc'][0]))}: {text}") from error


def takes_options(
    model: type[BaseModel], without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds the options of `model` to a Typer command, before the command's own parameters.

    The command gets those that were given, as text, in its parameter `given`. Where it has a
    parameter of an option's name, it has declared that option itself. `without`: fields that it
    does not take.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        own = {
            name: parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in inspect.signature(command).parameters.items()
            if name != "given"
        }
        added = {
            name: _parameter(model, name, option)
            for name, option in options_of(model).items()
            if name not in own and name not in without
        }

        @functools.wraps(command)
        def with_given(**values: object) -> None:
            given = {name: values.pop(name) for name in added}
            command(given={name: v for name, v in given.items() if v not in (None, [])}, **values)

        parameters = [*added.values(), *own.values()]
        with_given.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_given.__annotations__ = {each.name: each.annotation for each in parameters}
        return with_given

    return decorate


def arguments_of(settings: BaseModel, model: type[BaseModel]) -> Iterator[str]:
    """The arguments of a command with the options of `model` that bring about `settings`: one of
    its instances, or of a subclass. What has its default is left out."""
    for name, option in options_of(model).items():
        usual, value = model.model_fields[name].default, getattr(settings, name)
        if value == usual:
            continue
        if not option.metavar:
            yes, _, no = option.names[0].partition("/") if option.names else (f"--{name}", "", "")
            yield (yes if value == option.flags[0] else no).replace("_", "-")
            continue
        for each in value if isinstance(value, tuple) else (value,):
            if not (isinstance(usual, tuple) and each in usual):
                yield option_name(model, name)
                yield f"{each:g}" if isinstance(each, float) else str(each)


def _parameter(model: type[BaseModel], name: str, option: CommandOption) -> inspect.Parameter:
    import typer

    said = option.default or _default_words(model.model_fields[name])
    kind: Any = list[str] if option.repeats else str if option.metavar else bool
    declared = typer.Option(
        *(option.names or (option_name(model, name),)),
        metavar=option.metavar or None,
        help=f"{option.help} [{said}]" if said else option.help,
        show_default=False,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, declared],
    )


def _default_words(field: FieldInfo) -> str:
    value = field.default
    if value is None or value is False or value is PydanticUndefined or isinstance(value, tuple):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
