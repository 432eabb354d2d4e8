"""What a part of a model is called with when the model runs."""

from __future__ import annotations

import difflib
import inspect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

from agent.recording.drawn_tensor import literal, memory_order
from agent.recording.model_file import words
from problems.errors import UsageError

MOST_CASES = 16
"""Of one problem: each is verified and timed."""
Call = tuple[Sequence[Any], dict[str, Any]]


@dataclass
class Case:
    """Calls that differ in their tensors' values alone."""

    arguments: list[Any]
    """Of the first such call, in the order of `forward`, without what it takes by name alone."""
    call: Call
    """The first one as it was made."""
    count: int = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        leaves = tree_leaves(self.arguments)
        return tuple(n for leaf in leaves if isinstance(leaf, torch.Tensor) for n in leaf.shape)

    @property
    def kind(self) -> str:
        """All but sizes and values."""
        leaves, spec = tree_flatten(self.arguments)
        return f"{spec}" + ";".join(
            f"{leaf.dtype} {memory_order(leaf)}" if isinstance(leaf, torch.Tensor) else repr(leaf)
            for leaf in leaves
        )


def record(model: nn.Module, inputs: Any, name: str) -> tuple[list[Case], tuple[str, ...]]:
    """What the submodule `name` gets (empty: the model) when `model` runs with `inputs`, in its
    own mode and without gradients; the most frequent case first. One problem has cases that differ
    in sizes alone: what is left out is told.

    Raises `UsageError` where it gets nothing, or what can't be drawn, or the model raises.
    """
    module = submodule(model, name)
    found: defaultdict[str, dict[tuple[int, ...], Case]] = defaultdict(dict)

    def note(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        case = _case(module, (copied(args), copied(kwargs)), name)
        found[case.kind].setdefault(case.sizes, case).count += 1

    with module.register_forward_pre_hook(note, with_kwargs=True):
        run(model, calls_of(inputs))
    if not found:
        raise UsageError(f"{name} is not called when the model runs; give inputs that reach it")
    calls = [sum(case.count for case in cases.values()) for cases in found.values()]
    alike = [*found.values()][calls.index(max(calls))].values()
    notes = []
    if others := sum(calls) - max(calls):
        notes.append(
            f"{others} of {sum(calls)} calls are left out: they had other inputs than most, not"
            " only other sizes"
        )
    if len(alike) > MOST_CASES:
        notes.append(f"of {len(alike)} sizes, the {MOST_CASES} most frequent ones are taken")
    return sorted(alike, key=lambda case: -case.count)[:MOST_CASES], tuple(notes)


def submodule(model: nn.Module, name: str) -> nn.Module:
    named: dict[str, nn.Module] = dict(model.named_modules(remove_duplicate=False))
    if name not in named:
        near = difflib.get_close_matches(name, named, n=3) or [*named][1:4]
        raise UsageError(
            f"{type(model).__name__} has no module {name!r}; it has {', '.join(near) or 'none'}"
        )
    return named[name]


def calls_of(inputs: Any) -> list[Call]:
    """A tuple (or list) of arguments, a dict of them by name, or a list of such: several calls."""
    if isinstance(inputs, list) and inputs and all(isinstance(i, tuple | Mapping) for i in inputs):
        return [call for each in inputs for call in calls_of(each)]
    if isinstance(inputs, Mapping):
        return [((), dict(inputs))]
    return [(tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,), {})]


def run(model: nn.Module, calls: Sequence[Call]) -> list[torch.Tensor]:
    """The tensors that the model gives for copies of these, with the same draws each time; raises
    `UsageError` for what it raises."""
    try:
        with torch.no_grad(), draws_kept():
            torch.manual_seed(0)
            results = [model(*copied(args), **copied(kwargs)) for args, kwargs in calls]
    except UsageError:
        raise
    except Exception as error:
        kind = type(model).__name__
        raise UsageError(f"{kind} does not run with these inputs: {words(error)}") from error
    return [leaf for leaf in tree_leaves(results) if isinstance(leaf, torch.Tensor)]


def draws_kept() -> AbstractContextManager[None]:
    """What the user draws afterwards stays the same."""
    seeded = torch.cuda.device_count() if torch.cuda.is_initialized() else 0
    return torch.random.fork_rng(range(seeded))


def copied(value: Any) -> Any:
    return tree_map(lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else v, value)


def _case(module: nn.Module, call: Call, name: str) -> Case:
    bound = inspect.signature(module.forward).bind(*call[0], **call[1])
    bound.apply_defaults()
    arguments: list[Any] = []
    last = 0
    for parameter in bound.signature.parameters.values():
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            break
        value = bound.arguments[parameter.name]
        for leaf in tree_leaves(value):
            if not isinstance(leaf, torch.Tensor) and literal(leaf) is None:
                raise UsageError(
                    f"{name or 'the model'} gets {type(leaf).__name__} as {parameter.name}, but"
                    " only tensors, numbers and text can be drawn: give inputs without it"
                )
        several = parameter.kind is parameter.VAR_POSITIONAL
        arguments += value if several else [value]
        if several or value is not parameter.default:
            last = len(arguments)
    return Case(arguments[:last], call)  # without those that have their default
