"""A task with small sizes, for a trial where the real ones do not fit."""

from __future__ import annotations

import ast

from problems.problem import Problem
from problems.sizes import parse

_OPERATORS = (ast.Mult, ast.Add, ast.Sub, ast.Pow, ast.LShift, ast.FloorDiv)


def shrunk(problem: Problem, largest: int) -> Problem:
    """The task with every integer in its module-level constants cut to `largest`.

    It is a trial's task and no longer the suite's: constants that depend on one another in other
    ways than through their names may not fit together any more. A task that says its own CPU sizes
    is left alone.
    """
    tree = parse(problem.source, str(problem.path))
    sizes = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if name == "CPU_SIZES":
                return problem
            value = _literal(statement.value)
            if value is not None and (small := _cut(value, largest)) != value:
                sizes[name] = small
    source = f"{problem.source}\n\nCPU_SIZES = {sizes!r}\n"
    return problem.model_copy(update={"source": source})


def _literal(node: ast.expr) -> object:
    """The value of numbers, lists and tuples of them, and arithmetic on them; None for others."""
    for part in ast.walk(node):
        known = isinstance(part, ast.Constant | ast.Tuple | ast.List | ast.BinOp | ast.Load)
        if not known and not isinstance(part, _OPERATORS):
            return None
    return eval(compile(ast.Expression(node), "size", "eval"), {"__builtins__": {}})


def _cut(value: object, largest: int) -> object:
    if isinstance(value, list | tuple):
        return type(value)(_cut(item, largest) for item in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return min(value, largest)
    return value
