"""From the text of a reference module to its graph, without PyTorch and without executing it."""

from __future__ import annotations

import ast

from agent.tuner.tracing.graph import CannotTrace, Graph, Kind, Node, shared
from agent.tuner.tracing.interpreter import FRESH, Interpreter, place, plainly


def trace(source: str) -> Graph:
    """Read a KernelBench-style file; CannotTrace where it can't be understood as a whole."""
    try:
        return _graph(ast.parse(source))
    except SyntaxError as error:
        raise CannotTrace(f"line {error.lineno}, which is not Python") from None
    except RecursionError:
        raise CannotTrace("a computation this deep") from None


def _graph(tree: ast.Module) -> Graph:
    interpreter = Interpreter(tree)
    names = interpreter.globals
    if not {"Model", "get_inputs", "get_init_inputs"} <= set(names):
        raise CannotTrace("a file without `Model`, `get_inputs` and `get_init_inputs`")
    given = plainly("get_init_inputs", lambda: tuple(names["get_init_inputs"]()))
    model = place(plainly("Model", names["Model"], *given), "self")
    inputs = plainly("get_inputs", lambda: tuple(names["get_inputs"]()))
    defaults = _parameters(tree)
    arguments = tuple(defaults)
    is_function = "FUNCTION" in names
    known = len(inputs) if is_function else len(arguments)
    if len(inputs) > len(arguments) or len(inputs) < known:
        raise CannotTrace(
            f"a forward that takes {len(arguments)} arguments and is given {len(inputs)}"
        )
    tensors = [isinstance(value, Node) for value in inputs]
    if not (all(tensors) or (is_function and any(tensors))):
        raise CannotTrace("an argument of forward that is no tensor")
    leaves = [
        Node(Kind.INPUT, value.shape, value.dtype, name=name) if isinstance(value, Node) else value
        for name, value in zip(arguments, inputs, strict=False)
    ]
    fixed = {n: repr(v) for n, v in zip(arguments, leaves, strict=False) if not isinstance(v, Node)}
    fixed |= {name: defaults[name] for name in arguments[len(inputs) :]}
    interpreter.forward = True
    result = plainly("forward", model, *leaves)
    outputs = result if isinstance(result, tuple) and len(result) > 1 else (result,)
    if not all(isinstance(output, Node) for output in outputs):
        raise CannotTrace("a result that is neither a tensor nor several")
    one = shared(outputs)
    if any(n.name == FRESH for n in one):
        raise CannotTrace("a tensor made inside `forward`")
    results = tuple(one[output] for output in outputs)
    return Graph(arguments, results, fixed if is_function else None)


def _parameters(tree: ast.Module) -> dict[str, str]:
    """The names of the arguments of `Model.forward`, which a Sequential has of its own, and the
    text of their defaults."""
    models = (s for s in tree.body if isinstance(s, ast.ClassDef) and s.name == "Model")
    methods = (s for model in models for s in model.body if isinstance(s, ast.FunctionDef))
    forward = next((s.args for s in methods if s.name == "forward"), None)
    if forward is None:
        return {"input": ""}
    names = [a.arg for a in forward.args][1:]
    texts = ["", *("" for _ in names), *map(ast.unparse, forward.defaults)][-len(names) :]
    return dict(zip(names, texts, strict=True))
