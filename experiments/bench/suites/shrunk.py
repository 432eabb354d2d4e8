"""A task with small sizes, for a trial where the real ones do not fit."""

from __future__ import annotations

import ast

from problems.problem import Problem
from problems.sizes import parse

_NUMBERS = (ast.Constant, ast.Tuple, ast.List, ast.Load, ast.BinOp, ast.operator)


def shrunk(problem: Problem, largest: int) -> Problem:
    """The task with every integer in its module-level constants cut to `largest`.

    It is a trial's task and no longer the suite's. Constants that depend on one another otherwise
    than through their names may not fit together any more.
    """
    tree = parse(problem.source, str(problem.path))
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and _is_number(statement.value):
            code = compile(ast.Expression(statement.value), "size", "eval")
            small = _cut(eval(code, {"__builtins__": {}}), largest)
            statement.value = ast.parse(repr(small), mode="eval").body
    return problem.model_copy(update={"source": ast.unparse(tree) + "\n"})


def _is_number(node: ast.expr) -> bool:
    """Numbers, strings, tuples and lists of them, and arithmetic: nothing that reads a name."""
    return all(isinstance(part, _NUMBERS) for part in ast.walk(node))


def _cut(value: object, largest: int) -> object:
    if isinstance(value, list | tuple):
        return type(value)(_cut(item, largest) for item in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return min(value, largest)
    return value
