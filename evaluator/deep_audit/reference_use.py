"""Whether a candidate lets the reference's own class do the work."""

from __future__ import annotations

import ast

from evaluator.candidate_tree import candidate_tree


def uses_reference(candidate: str, reference: str) -> bool:
    """Whether a class whose forward is the reference's is what `ModelNew` runs.

    It is where `ModelNew` inherits from that class and leaves forward to it, or where the class is
    instantiated, or its forward called. A `ModelNew` that copies the reference word for word is
    not meant: that one calls operators like any other.
    """
    own, given = candidate_tree(candidate), candidate_tree(reference)
    if own is None or given is None:
        return False
    wanted = [_forward(each) for each in _classes(given) if each.name == "Model"]
    copies = {
        each.name
        for each in _classes(own)
        if each.name != "ModelNew" and _forward(each) is not None and _forward(each) in wanted
    }
    if not copies:
        return False
    for each in _classes(own):
        inherits = any(isinstance(base, ast.Name) and base.id in copies for base in each.bases)
        if each.name == "ModelNew" and inherits and _defers(each):
            return True
    return any(isinstance(node, ast.Call) and _named(node.func) in copies for node in ast.walk(own))


def _defers(each: ast.ClassDef) -> bool:
    """Whether forward is inherited, or calls what it would have inherited."""
    if _forward(each) is None:
        return True
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "forward"
        and isinstance(node.value, ast.Call)
        and _named(node.value.func) == "super"
        for node in ast.walk(each)
    )


def _named(function: ast.expr) -> str:
    """`Model` for `Model(...)` and for `Model.forward(...)`."""
    if isinstance(function, ast.Attribute) and function.attr == "forward":
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def _forward(each: ast.ClassDef) -> str | None:
    for node in each.body:
        if isinstance(node, ast.FunctionDef) and node.name == "forward":
            return ast.dump(ast.Module(body=_without_words(node.body), type_ignores=[]))
    return None


def _without_words(body: list[ast.stmt]) -> list[ast.stmt]:
    """A function's body without its docstring."""
    first = body[0] if body else None
    is_constant = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_constant and isinstance(first.value.value, str) else body  # type: ignore[union-attr]
