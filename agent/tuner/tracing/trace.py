"""From the text of a reference module to its graph, without PyTorch and without executing it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from agent.tuner.tracing.graph import CannotTrace, Graph, Kind, Node, shared
from agent.tuner.tracing.interpreter import FRESH, Interpreter, place, plainly


@dataclass(frozen=True)
class Traced:
    """A reference and what it computes."""

    tree: ast.Module
    graph: Graph


def trace(source: str) -> Traced:
    """Read a KernelBench-style file; CannotTrace where it can't be understood as a whole."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise CannotTrace(f"line {error.lineno}, which is not Python") from None
    try:
        return Traced(tree, _graph(tree))
    except RecursionError:
        raise CannotTrace("a computation this deep") from None


def _graph(tree: ast.Module) -> Graph:
    interpreter = Interpreter(tree)
    names = interpreter.globals
    if not {"Model", "get_inputs", "get_init_inputs"} <= set(names):
        raise CannotTrace("a file without `Model`, `get_inputs` and `get_init_inputs`")
    model = place(plainly(names["Model"], *plainly(names["get_init_inputs"])), "self")
    inputs = plainly(names["get_inputs"])
    arguments = _parameters(tree)
    if len(arguments) != len(inputs):
        raise CannotTrace(
            f"a forward that takes {len(arguments)} arguments and is given {len(inputs)}"
        )
    leaves = [_leaf(n, value) for n, value in zip(arguments, inputs, strict=True)]
    interpreter.forward = True
    outputs: list[Node] = []
    returns = _returns(plainly(model, *leaves), outputs)
    one = shared(outputs)
    if any(n.name == FRESH for n in one):
        raise CannotTrace("a tensor made inside `forward`")
    return Graph(arguments, tuple(one[output] for output in outputs), returns)


def _parameters(tree: ast.Module) -> tuple[str, ...]:
    """The names of the arguments of `Model.forward`."""
    model = next(s for s in tree.body if isinstance(s, ast.ClassDef) and s.name == "Model")
    for statement in model.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "forward":
            return tuple(a.arg for a in statement.args.args)[1:]
    raise CannotTrace("a `Model` without `forward`")


def _leaf(argument: str, value: Any) -> Any:
    """An argument of forward: tensors as leaves, whole numbers as they are."""
    if isinstance(value, Node):
        return Node(Kind.INPUT, value.shape, value.dtype, name=argument)
    if isinstance(value, float):
        raise CannotTrace("an argument that is a fraction")
    return value


def _returns(result: Any, outputs: list[Node]) -> str:
    """The format string of the return statement; collects the outputs."""
    if isinstance(result, Node):
        outputs.append(result)
        return f"{{{len(outputs) - 1}}}"
    if isinstance(result, (tuple, list)):
        inside = ", ".join(_returns(item, outputs) for item in result)
        if isinstance(result, list):
            return f"[{inside}]"
        return f"({inside}{',' if len(result) == 1 else ''})"
    raise CannotTrace(f"a result of type {type(result).__name__}")
