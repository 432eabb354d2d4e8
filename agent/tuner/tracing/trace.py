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
    arguments = _parameters(tree)
    if len(arguments) != len(inputs):
        raise CannotTrace(
            f"a forward that takes {len(arguments)} arguments and is given {len(inputs)}"
        )
    if not all(isinstance(value, Node) for value in inputs):
        raise CannotTrace("an argument of forward that is no tensor")
    leaves = [
        Node(Kind.INPUT, value.shape, value.dtype, name=name)
        for name, value in zip(arguments, inputs, strict=True)
    ]
    interpreter.forward = True
    result = plainly("forward", model, *leaves)
    outputs = result if isinstance(result, tuple) and len(result) > 1 else (result,)
    if not all(isinstance(output, Node) for output in outputs):
        raise CannotTrace("a result that is neither a tensor nor several")
    one = shared(outputs)
    if any(n.name == FRESH for n in one):
        raise CannotTrace("a tensor made inside `forward`")
    return Graph(arguments, tuple(one[output] for output in outputs))


def _parameters(tree: ast.Module) -> tuple[str, ...]:
    """The names of the arguments of `Model.forward`, which a Sequential has of its own."""
    models = (s for s in tree.body if isinstance(s, ast.ClassDef) and s.name == "Model")
    methods = (s for model in models for s in model.body if isinstance(s, ast.FunctionDef))
    names = (a.arg for s in methods if s.name == "forward" for a in s.args.args)
    return tuple(names)[1:] or ("input",)
