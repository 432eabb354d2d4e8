"""What a module binds, read from its text."""

from __future__ import annotations

import ast


def bound_names(tree: ast.AST | None) -> set[str]:
    """Names that a module binds at its top level, branches of `if`, `try` and `with` included."""
    names: set[str] = set()
    pending = [tree] if tree is not None else []
    while pending:
        node = pending.pop()
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                names.add(node.name)
                continue  # what it binds inside is its own
            case ast.Lambda():
                continue
            case ast.alias():
                names.add(node.asname or node.name.split(".")[0])
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
        pending.extend(ast.iter_child_nodes(node))
    return names
