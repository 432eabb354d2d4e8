"""Where the lines that compilers number stand in a candidate's file, by its `load_inline`."""

from __future__ import annotations

import ast
import re

from evaluator.candidate_tree import candidate_tree

Layout = dict[str, dict[int, int]]
"""By compiled file: its lines, and the candidate's for each; both counted from 1."""
# File, position among the arguments, name, and lines that are put in front.
_TEXTS = (("main.cpp", 1, "cpp_sources", 1), ("cuda.cu", 2, "cuda_sources", 3))


def inline_layout(source: str) -> Layout:
    """The lines of all inline sources that are written as plain strings.

    The line that binds a function stands for the first one that names the function. What two calls
    put in one place is left out, and so is what is not Python.
    """
    tree = candidate_tree(source)
    if tree is None:
        return {}
    named = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    rows = source.splitlines()
    found: Layout = {}
    twice: set[tuple[str, int]] = set()
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith("load_inline"):
            continue
        for file, position, keyword, ahead in _TEXTS:
            bare = _argument(call, None, "no_implicit_headers", named)
            if isinstance(bare, ast.Constant) and bare.value is True:
                ahead = 0
            pieces = _strings(_argument(call, position, keyword, named), named)
            lines = _lines(pieces, rows, ahead)
            if file == "main.cpp":
                after = ahead + sum(text.count("\n") + 1 for text, _ in pieces) + 2
                texts = {number: rows[number - 1] for number in lines.values()}
                functions = _strings(_argument(call, None, "functions", named), named)
                lines |= _bound(functions, texts, after)
            for line, number in lines.items():
                if found.setdefault(file, {}).setdefault(line, number) != number:
                    twice.add((file, line))
    for file, line in twice:
        del found[file][line]
    return found


def _argument(
    call: ast.Call, position: int | None, keyword: str, named: dict[str, ast.expr]
) -> ast.expr | None:
    value = next((each.value for each in call.keywords if each.arg == keyword), None)
    if value is None and position is not None and position < len(call.args):
        value = call.args[position]
    return named.get(value.id) if isinstance(value, ast.Name) else value


def _strings(value: ast.expr | None, named: dict[str, ast.expr]) -> list[tuple[str, int]]:
    """The plain strings that an argument holds, and their first lines; none where any of them is no
    such string."""
    parts = value.elts if isinstance(value, ast.List | ast.Tuple) else [value] if value else []
    found = []
    for part in parts:
        each = named.get(part.id) if isinstance(part, ast.Name) else part
        if not isinstance(each, ast.Constant) or not isinstance(each.value, str):
            return []
        found.append((each.value, each.lineno))
    return found


def _lines(pieces: list[tuple[str, int]], rows: list[str], ahead: int) -> dict[int, int]:
    lines: dict[int, int] = {}
    for piece, first in pieces:
        for number, text in enumerate(piece.split("\n"), first):
            ahead += 1
            if number <= len(rows) and text.strip() in rows[number - 1]:
                lines[ahead] = number
    return lines


def _bound(functions: list[tuple[str, int]], texts: dict[int, str], after: int) -> dict[int, int]:
    lines: dict[int, int] = {}
    for offset, (name, _) in enumerate(functions):
        pattern = re.compile(rf"\b{re.escape(name)}\s*\(")
        first = next((number for number, row in texts.items() if pattern.search(row)), None)
        if first is not None:
            lines[after + offset] = first
    return lines
