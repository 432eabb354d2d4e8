"""A problem that is one function, and candidates for it that are functions too."""

from __future__ import annotations

import ast
from functools import lru_cache

from problems.bound_names import bound_names
from problems.problem import Problem

SEPARATOR = "#" * 146
"""KernelBench-X's, between a submission and the test that may follow it."""
ANY_NAME = "kernel_function"


@lru_cache(maxsize=256)
def function_of(source: str) -> str:
    """What `FUNCTION = "..."` in a problem's source says; empty for a problem that is a module."""
    for statement in ast.parse(source).body if "FUNCTION" in source else ():
        match statement:
            case ast.Assign([ast.Name("FUNCTION")], ast.Constant(str(name))):
                return name
    return ""


def entry_names(problem: Problem) -> tuple[str, ...]:
    """What a candidate may call its function; none where the problem is a module."""
    name = function_of(problem.source)
    return tuple(dict.fromkeys((name, problem.name, ANY_NAME))) if name else ()


def with_model(candidate: str, problem: Problem) -> str:
    """A candidate that is a function, with a `ModelNew` that calls it; any other as it is."""
    names = entry_names(problem)
    if not names:
        return candidate
    source = candidate.partition(SEPARATOR)[0]
    try:
        defined = bound_names(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return candidate
    entry = next((name for name in names if name in defined), None)
    if "ModelNew" in defined or entry is None:
        return candidate
    alias = "" if entry == names[0] else f"{names[0]} = {entry}\n"
    return f"{source.rstrip()}\n\n\nimport torch\n\n{alias}\n{_model(problem.source)}"


@lru_cache(maxsize=256)
def _model(source: str) -> str:
    nodes = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    (model,) = (node for node in nodes if node.name == "Model")
    model.name = "ModelNew"
    return ast.unparse(model) + "\n"
