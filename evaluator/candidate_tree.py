"""A candidate's Python source as a tree, read within limits: its author may be hostile."""

from __future__ import annotations

import ast

MOST_CHARACTERS = 2**17
"""Python takes two seconds for so much of `{a}` in an f-string, and two minutes for a megabyte."""
_MOST_DEPTH = 100
"""Of nested nodes. `ast.unparse` takes several frames for each, of the thousand that Python has."""


def candidate_tree(source: str) -> ast.Module | None:
    """The tree; None for what is not Python, is longer than 128 KiB or is nested too deeply.

    Readers of the tree may recurse into it, and need time that is linear in the nodes.
    """
    if len(source) > MOST_CHARACTERS:
        return None
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    level: list[ast.AST] = [tree]
    for _ in range(_MOST_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    return None
