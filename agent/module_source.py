"""A module at hand -> a problem file in KernelBench's format.

What is written is run once beside the module: the file must give what the module gives.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map

from agent.class_source import Writing
from agent.recording.recorded_calls import Case
from agent.recording.recorded_inputs import inputs_source
from problems.errors import UsageError

Spec = Callable[[], Sequence[Any]] | Sequence[Case]
_CLOSE = {torch.float16: 1e-2, torch.bfloat16: 2e-2}
"""Relative differences that two runs of one module may show, where not `_CLOSE_ELSE`."""
_CLOSE_ELSE = 1e-3


def problem_source(module: nn.Module, inputs: Spec) -> str:
    """The text of a problem file for `module`, an instance of any class.

    `inputs`: the cases that it was recorded in, or a function without arguments, whose source
    becomes `get_inputs`. Raises `UsageError` for what can't be written.
    """
    writing = Writing()
    writing.model(module)
    made = _function_source(inputs) if callable(inputs) else inputs_source(inputs)
    parts = [writing.text(), made, "def get_init_inputs():\n    return []"]
    source = "\n\n\n".join(parts) + "\n"
    _compare(source, module, None if callable(inputs) else inputs[0])
    return source


def examples(inputs: Any, place: torch.device) -> Any:
    """`inputs` with tensors for shapes (float32), and for pairs of a shape and a dtype's name."""
    if isinstance(inputs, Mapping):
        return {name: _example(value, place) for name, value in inputs.items()}
    return [_example(each, place) for each in inputs] if isinstance(inputs, list) else inputs


def _example(value: Any, place: torch.device) -> Any:
    if not isinstance(value, list | tuple):
        return value
    if all(isinstance(size, int) for size in value):
        return torch.randn(tuple(value), device=place)
    if len(value) == 2 and isinstance(value[1], str):
        dtype = getattr(torch, value[1].removeprefix("torch."))
        drawn = torch.randn if dtype.is_floating_point else partial(torch.randint, 2)
        return drawn(tuple(value[0]), device=place).to(dtype)
    return type(value)(_example(each, place) for each in value)


def _compare(source: str, module: nn.Module, case: Case | None) -> None:
    """Raise `UsageError` unless the file's model gives what the module does."""
    kind = type(module).__name__
    weights = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    place = next(iter(weights.values()), torch.empty(0)).device
    try:
        # What the user draws afterwards stays the same.
        with torch.no_grad(), torch.random.fork_rng([place] if place.type == "cuda" else []):
            namespace: dict[str, Any] = {"__name__": "problem"}
            exec(compile(source, f"<problem of {kind}>", "exec"), namespace)
            model = namespace["Model"]().to(place)
            for name, value in [*model.named_parameters(), *model.named_buffers()]:
                value.copy_(weights.pop(name))
            if weights:
                raise ValueError(f"it has no {next(iter(weights))}")
            drawn = namespace["get_inputs"]()
            values, others = (drawn, {}) if case is None else (case.arguments, case.others)
            found = [
                _called(model, values, {}, place),
                _called(copy.deepcopy(module), values, others, place),
            ]
        for one, other in zip(*found, strict=True):
            close = _CLOSE.get(other.dtype, _CLOSE_ELSE)
            torch.testing.assert_close(one, other, rtol=close, atol=close)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UsageError(
            f"{kind}, written down, does not do what it did ({reason}); write a file in"
            " KernelBench's format"
        ) from error


def _called(
    module: nn.Module, values: Sequence[Any], others: Mapping[str, Any], place: torch.device
) -> list[torch.Tensor]:
    """The tensors in what `forward` returns, however nested; raises `ValueError` for none."""
    own = tree_map(lambda v: v.clone().to(place) if isinstance(v, torch.Tensor) else v, values)
    torch.manual_seed(0)
    leaves = tree_leaves(module(*own, **others))
    if not (tensors := [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]):
        raise ValueError("it returns no tensor")
    return tensors


def _function_source(inputs: Callable[[], Sequence[Any]]) -> str:
    try:
        node = ast.parse(textwrap.dedent(inspect.getsource(inputs))).body[0]
    except (OSError, TypeError, SyntaxError):
        node = None
    if not isinstance(node, ast.FunctionDef) or node.args.args:
        raise UsageError("inputs= takes a function without arguments made with def, not a lambda")
    outside = inspect.getclosurevars(inputs)
    free = {*outside.globals, *outside.nonlocals} - {"torch", "math"}
    if free:
        raise UsageError(
            f"the function given as inputs= uses {sorted(free)[0]}; only torch and math can be used"
        )
    node.name = "get_inputs"
    return (
        f"import math\n\n\n{ast.unparse(node)}" if "math" in outside.globals else ast.unparse(node)
    )
