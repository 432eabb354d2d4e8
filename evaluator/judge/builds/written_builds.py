"""How many builds a candidate's text asks for: what importing it leaves to later steps."""

from __future__ import annotations

import ast

from evaluator.candidate_tree import candidate_tree

_MODULE = "torch.utils.cpp_extension"
_FUNCTIONS = ("load_inline", "load")


def written_builds(source: str) -> int:
    """How often the text names `load_inline`, or `load` of `cpp_extension`, but to import it.

    A guess: what is built in a loop or by a helper is named once. 0 for what is not Python.
    """
    tree = candidate_tree(source)
    if tree is None:
        return 0
    functions = {"load_inline"}
    modules = {"cpp_extension", _MODULE}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == _MODULE:
            functions |= {a.asname or a.name for a in node.names if a.name in _FUNCTIONS}
        elif isinstance(node, ast.ImportFrom) and node.module == "torch.utils":
            modules |= {a.asname or a.name for a in node.names if a.name == "cpp_extension"}
        elif isinstance(node, ast.Import):
            modules |= {a.asname for a in node.names if a.name == _MODULE and a.asname}
    return sum(_names_one(node, functions, modules) for node in ast.walk(tree))


def _names_one(node: ast.AST, functions: set[str], modules: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in functions
    if isinstance(node, ast.Attribute):
        return node.attr in _FUNCTIONS and ast.unparse(node.value) in modules
    return False
