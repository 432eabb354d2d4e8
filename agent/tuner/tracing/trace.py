"""From the text of a reference module to its graph, without PyTorch and without executing it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.graph import Builder, Graph, Kind, Node
from agent.tuner.tracing.interpreter import Interpreter
from agent.tuner.tracing.layers import Layer
from agent.tuner.tracing.normalise import normalise
from agent.tuner.tracing.python_values import Class, Instance, Parameter


@dataclass(frozen=True)
class Traced:
    """A reference and what it computes."""

    tree: ast.Module
    graph: Graph
    builder: Builder


def trace(source: str) -> Traced:
    """Read a KernelBench-style file; CannotTrace where it can't be understood as a whole."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise CannotTrace(f"line {error.lineno}, which is not Python") from None
    builder = Builder()
    interpreter = Interpreter(tree, builder)
    names = interpreter.globals
    model = names.get("Model")
    if not isinstance(model, Class) or "get_inputs" not in names:
        raise CannotTrace("a file without `Model` and `get_inputs`")
    given = interpreter.call(names["get_init_inputs"], (), {}) if "get_init_inputs" in names else []
    args, kwargs = _constructor_arguments(given)
    instance = interpreter.construct(model, args, kwargs)
    name(instance, "self")
    inputs = interpreter.call(names["get_inputs"], (), {})
    forward = interpreter.attribute(instance, "forward")
    arguments = _parameter_names(forward.node, len(inputs))
    leaves = [_leaf(builder, n, value) for n, value in zip(arguments, inputs, strict=True)]
    interpreter.torch.anchor = next((leaf for leaf in leaves if isinstance(leaf, Node)), None)
    result = interpreter.call(forward, tuple(leaves), {})
    outputs: list[Node] = []
    returns = _returns(result, outputs)
    graph = normalise(Graph(tuple(arguments), tuple(outputs), returns), builder)
    if any(n.kind is Kind.INPUT and n.name == "fresh" for n in graph.nodes()):
        raise CannotTrace("tensors made inside `forward`")
    return Traced(tree, graph, builder)


def name(value: Any, path: str) -> None:
    """Tell every module below `value` by which Python expression it is reached."""
    if isinstance(value, Layer):
        value.path = path
    elif isinstance(value, Instance):
        value.path = path
        for index, item in enumerate(value.items or ()):
            name(item, f"{path}[{index}]")
        for attribute, item in value.attributes.items():
            if not isinstance(item, Parameter):
                name(item, f"{path}.{attribute}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            name(item, f"{path}[{index}]")


def _constructor_arguments(given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A list; or, as some suites have it, a list of a list and a dict."""
    items = list(given or [])
    if len(items) == 2 and isinstance(items[0], list) and isinstance(items[1], dict):
        return tuple(items[0]), items[1]
    return tuple(items), {}


def _parameter_names(node: ast.FunctionDef | ast.Lambda, count: int) -> list[str]:
    names = [a.arg for a in node.args.args][1:]
    if count > len(names) or count < len(names) - len(node.args.defaults):
        raise CannotTrace(f"a forward that takes {len(names)} arguments and is given {count}")
    return names[:count]


def _leaf(b: Builder, argument: str, value: Any) -> Any:
    """An argument of forward: tensors and fractions as leaves, whole numbers as they are."""
    if isinstance(value, Node):
        return b.leaf(Kind.INPUT, argument, value.shape, value.dtype)
    if isinstance(value, float):
        return b.add(Node(Kind.INPUT, (), "float32", op="scalar", name=argument))
    return value


def _returns(result: Any, outputs: list[Node]) -> str:
    """The format string of the return statement; collects the outputs."""
    if isinstance(result, Node):
        outputs.append(result)
        return f"{{{len(outputs) - 1}}}"
    if isinstance(result, (tuple, list)):
        parts: Sequence[str] = [_returns(item, outputs) for item in result]
        inside = ", ".join(parts)
        if isinstance(result, list):
            return f"[{inside}]"
        return f"({inside}{',' if len(parts) == 1 else ''})"
    raise CannotTrace(f"a result of type {type(result).__name__}")
