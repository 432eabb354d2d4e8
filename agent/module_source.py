"""A module at hand -> a problem file in KernelBench's format.

What is written is run once beside the module: the file must give what the module gives.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map

from agent.class_source import Writing
from problems.errors import UsageError

InputSpec = Callable[[], Sequence[Any]] | Sequence[Any] | Mapping[str, Any]
_CLOSE = {torch.float16: 1e-2, torch.bfloat16: 2e-2}
"""Relative differences that two runs of one module may show, where not `_CLOSE_ELSE`."""
_CLOSE_ELSE = 1e-3


def problem_source(module: object, inputs: InputSpec | None) -> str:
    """The text of a problem file for `module`, an instance of any `torch.nn.Module` class.

    `inputs` is a function without arguments (its source becomes `get_inputs`), or what `forward`
    takes, in order or by name: a tensor (its shape, dtype and, for integers, its range are kept), a
    shape (float32), a pair (shape, dtype name), or a number. Raises `UsageError` for what can't be
    written.
    """
    if not isinstance(module, nn.Module):
        raise UsageError(f"optimize() takes a problem or a torch.nn.Module, no {type(module)}")
    kind = type(module).__name__
    if inputs is None:
        raise UsageError(
            f"optimize({kind}(...)) needs inputs: a function like KernelBench's get_inputs, or a"
            " list of example tensors or shapes"
        )
    if isinstance(inputs, Mapping):
        inputs = _in_order(module, inputs)
    writing = Writing()
    writing.model(module)
    made = [_inputs_source(inputs), "def get_init_inputs():\n    return []"]
    source = "\n\n\n".join([writing.text(), *made]) + "\n"
    _compare(source, module, None if callable(inputs) else inputs)
    return source


def _in_order(module: nn.Module, named: Mapping[str, Any]) -> list[Any]:
    parameters = inspect.signature(module.forward).parameters
    if unknown := sorted({*named} - {*parameters}):
        raise UsageError(f"forward of {type(module).__name__} takes no {unknown[0]}")
    names = list(parameters)
    last = max((names.index(name) for name in named), default=-1)
    return [named.get(name, parameters[name].default) for name in names[: last + 1]]


def _compare(source: str, module: nn.Module, examples: Sequence[Any] | None) -> None:
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
            values = namespace["get_inputs"]()
            for number, example in enumerate(examples or ()):
                if isinstance(example, torch.Tensor):
                    values[number] = example
            found = [_called(each, values, place) for each in (model, copy.deepcopy(module))]
        for one, other in zip(*found, strict=True):
            close = _CLOSE.get(other.dtype, _CLOSE_ELSE)
            torch.testing.assert_close(one, other, rtol=close, atol=close)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UsageError(
            f"{kind}, written down, does not do what it did ({reason}); write a file in"
            " KernelBench's format"
        ) from error


def _called(module: nn.Module, values: Sequence[Any], place: torch.device) -> list[torch.Tensor]:
    """The tensors in what `forward` returns, however nested; raises `ValueError` for none."""
    own = tree_map(lambda v: v.clone().to(place) if isinstance(v, torch.Tensor) else v, values)
    torch.manual_seed(0)
    leaves = tree_leaves(module(*own))
    if not (tensors := [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]):
        raise ValueError("it returns no tensor")
    return tensors


def _inputs_source(inputs: Callable[[], Sequence[Any]] | Sequence[Any]) -> str:
    if not callable(inputs):
        made = ", ".join(_input(item) for item in inputs)
        return f"def get_inputs():\n    return [{made}]"
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


def _input(item: Any) -> str:
    if item is None or isinstance(item, bool | int | float):
        return repr(item)
    if isinstance(item, torch.Tensor):
        low, high = (0, 2)
        is_integer = not item.is_floating_point() and not item.is_complex()
        if is_integer and item.dtype is not torch.bool and item.numel():
            low, high = int(item.min()), int(item.max()) + 1
        return _tensor(tuple(item.shape), str(item.dtype).removeprefix("torch."), low, high)
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], str):
        return _tensor(tuple(item[0]), item[1].removeprefix("torch."), 0, 2)
    if isinstance(item, tuple | list) and all(isinstance(size, int) for size in item):
        return _tensor(tuple(item), "float32", 0, 2)
    if isinstance(item, tuple | list):
        return f"[{', '.join(map(_input, item))}]"
    raise UsageError(
        f"inputs= holds {type(item).__name__}; give tensors, shapes, (shape, dtype) or numbers"
    )


def _tensor(shape: tuple[int, ...], dtype: str, low: int, high: int) -> str:
    if dtype == "bool":
        return f"torch.randint(0, 2, {shape}).bool()"
    if "int" in dtype:
        return f"torch.randint({low}, {high}, {shape}, dtype=torch.{dtype})"
    return f"torch.randn({shape}, dtype=torch.{dtype})"
