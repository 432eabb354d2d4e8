"""A candidate's Python source as a tree, read within limits: its author may be hostile."""

from __future__ import annotations

import ast

_MOST_CHARACTERS = 2**20
_MOST_NODES = 200_000
_MOST_DEPTH = 100
"""Of nested nodes. `ast.unparse` takes several frames for each, of the thousand that Python has."""


def candidate_tree(source: str) -> ast.Module | None:
    """The tree; None for what is not Python, is longer than 1 MiB or is nested too deeply.

    Readers of the tree may recurse into it, and need time that is linear in the nodes.
    """
    if len(source) > _MOST_CHARACTERS:
        return None
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    nodes = 0
    level: list[ast.AST] = [tree]
    for _ in range(_MOST_DEPTH):
        nodes += len(level)
        if nodes > _MOST_NODES:
            return None
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    return None
