"""Kinds of work that a module may write out instead of calling one operator for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

_PRODUCTS = {"matmul", "bmm", "einsum", "baddbmm"}
_TRANSPOSES = {"transpose", "permute", "T", "mT", "t"}
_WEIGHTS = {"softmax", "masked_fill", "relu", "sigmoid"}
_REDUCTIONS = {"sum", "mean", "norm", "vector_norm", "max", "amax", "std", "var", "logsumexp"}
_TARGETS = {"target", "targets", "label", "labels"}


def is_attention(part: ast.AST) -> bool:
    """Two products, one of them with a transposed operand, and weights made of the first."""
    products = [node for node in ast.walk(part) if _is_product(node)]
    transposed = any(_attributes(product) & _TRANSPOSES for product in products)
    return len(products) > 1 and transposed and bool(_attributes(part) & _WEIGHTS)


def is_recurrence(part: ast.AST) -> bool:
    """A state is carried through a loop over a tensor's dimension, or from call to call."""
    return any(
        _loops_over_time(method) or (method.name == "forward" and _keeps_state(method))
        for method in ast.walk(part)
        if isinstance(method, ast.FunctionDef)
    )


def categories(part: ast.AST) -> Iterator[str]:
    """What a module with a reduction or a softmax may be: `loss`, `softmax`, `normalization`."""
    for method in ast.walk(part):
        if not isinstance(method, ast.FunctionDef):
            continue
        if _TARGETS & {argument.arg for argument in method.args.args}:
            yield "loss"
        values = _assigned(method)
        for node in ast.walk(method):
            if not isinstance(node, ast.BinOp) or _is_reduction(node.left, values):
                continue
            by = _attributes(node.right, values)
            divides = isinstance(node.op, ast.Div) or (
                isinstance(node.op, ast.Mult) and "rsqrt" in by
            )
            if divides and by & _REDUCTIONS:
                yield "softmax" if "exp" in _attributes(node.left, values) else "normalization"
            elif isinstance(node.op, ast.Sub) and ("logsumexp" in by or {"log", "exp"} <= by):
                yield "softmax"


def _is_product(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(op=ast.MatMult()):
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _PRODUCTS
        case _:
            return False


def _is_reduction(node: ast.expr, values: dict[str, ast.expr]) -> bool:
    if isinstance(node, ast.Name):
        node = values.get(node.id, node)
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in _REDUCTIONS


def _loops_over_time(method: ast.FunctionDef) -> bool:
    values = _assigned(method)
    return any(
        isinstance(loop, ast.For)
        and bool(_attributes(loop.iter, values) & {"shape", "size"})
        and _carries(loop.body)
        for loop in ast.walk(method)
    )


def _carries(body: Sequence[ast.stmt]) -> bool:
    """Whether a name is read before the body assigns it: its value is the last round's."""
    read: set[str] = set()
    assigned: set[str] = set()
    for statement in body:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        stored = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        read |= {name.id for name in names if isinstance(name.ctx, ast.Load)} - assigned
        if stored & read:
            return True
        assigned |= stored
    return False


def _keeps_state(method: ast.FunctionDef) -> bool:
    own = [
        node
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    ]
    stored = {node.attr for node in own if isinstance(node.ctx, ast.Store)}
    return bool(stored & {node.attr for node in own if isinstance(node.ctx, ast.Load)})


def _assigned(method: ast.FunctionDef) -> dict[str, ast.expr]:
    return {
        target.id: node.value
        for node in ast.walk(method)
        if isinstance(node, ast.Assign)
        for names in node.targets
        for target in (names.elts if isinstance(names, ast.Tuple) else [names])
        if isinstance(target, ast.Name)
    }


def _attributes(node: ast.AST, values: dict[str, ast.expr] | None = None) -> set[str]:
    """Names of the attributes and methods in an expression; with those of its local names."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute):
            found.add(inner.attr)
        elif values and isinstance(inner, ast.Name) and inner.id in values:
            found |= _attributes(values[inner.id])
    return found
