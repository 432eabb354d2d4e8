"""Seed faults into code that two versions share, and see whether each version's tests find them.

    python .ci/seeded_faults.py list OLD NEW > faults.json    # 60 faults in functions of both trees
    python .ci/seeded_faults.py run TREE faults.json OUT.jsonl

OLD and NEW are checkouts. A fault turns a comparison round, leaves a call out, or changes a
constant. `run` goes on where it was interrupted. It runs the tests that name the changed module
first, then those in the folder that mirrors its package.
"""

import ast
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("problems", "evaluator", "tools", "agent", "experiments")
LEFT_OUT = ("problems/level", "experiments/bench", "experiments/re", "agent/tuner")
FAULTS, SEED, LIMIT_S = 60, 66, 420
TURNED = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq,
          ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn,
          ast.NotIn: ast.In}  # fmt: skip


def functions(tree: Path) -> dict[str, list[tuple[str, ast.AST, str]]]:
    """By what a function does (its syntax tree without its docstring): file, node, file's text."""
    found: dict[str, list[tuple[str, ast.AST, str]]] = {}
    for package in PACKAGES:
        for path in sorted((tree / package).rglob("*.py")):
            name = str(path.relative_to(tree))
            if name.startswith(LEFT_OUT):
                continue
            text = path.read_text()
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    found.setdefault(body(node), []).append((name, node, text))
    return found


def body(function: ast.FunctionDef) -> str:
    rest = function.body[1:] if ast.get_docstring(function) else function.body
    return f"{function.name}: " + "\n".join(ast.dump(part) for part in rest)


def edits(function: ast.AST) -> Iterator[tuple[str, int, ast.AST, str]]:
    """Kind, index within the function's walk, node, and what replaces it."""
    docstrings = {id(part.value) for part in ast.walk(function) if isinstance(part, ast.Expr)
                  and isinstance(part.value, ast.Constant)}  # fmt: skip
    for index, node in enumerate(ast.walk(function)):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in TURNED:
            turned = ast.Compare(node.left, [TURNED[type(node.ops[0])](), *node.ops[1:]],
                                 node.comparators)  # fmt: skip
            yield "comparison", index, node, f"({ast.unparse(turned)})"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield "call", index, node, "pass"
        elif isinstance(node, ast.Constant) and id(node) not in docstrings:
            if type(node.value) in (int, float):
                yield "constant", index, node, repr(node.value * 2 + 1)
            elif isinstance(node.value, bool):
                yield "constant", index, node, repr(not node.value)


def changed(text: str, node: ast.AST, new: str) -> str:
    lines = text.encode().split(b"\n")
    before = b"\n".join([*lines[: node.lineno - 1], lines[node.lineno - 1][: node.col_offset]])
    after = b"\n".join(
        [lines[node.end_lineno - 1][node.end_col_offset :], *lines[node.end_lineno :]]
    )
    return (before + new.encode() + after).decode()


def choose(old: Path, new: Path) -> list[dict[str, object]]:
    olds, news = functions(old), functions(new)
    both = [key for key in olds if len(olds[key]) == 1 and len(news.get(key, [])) == 1]
    draw = random.Random(SEED)
    draw.shuffle(both)
    chosen: list[dict[str, object]] = []
    for key in both:
        (old_file, node, _), (new_file, new_node, _) = olds[key][0], news[key][0]
        kinds = ("comparison", "call", "constant")
        wanted = kinds[len(chosen) % 3]
        # F-strings have no places of their own before Python 3.12.
        inside = {id(part) for each in ast.walk(node) if isinstance(each, ast.JoinedStr)
                  for part in ast.walk(each)}  # fmt: skip
        possible = [e for e in edits(node) if e[0] == wanted and id(e[2]) not in inside]
        if possible:
            kind, _, at, replacement = draw.choice(possible)
            offset = new_node.lineno - node.lineno
            twin = next(
                (e for e in edits(new_node)
                 if e[0] == kind and ast.dump(e[2]) == ast.dump(at)), None
            )  # fmt: skip
            if twin is None:
                continue
            chosen.append({"function": node.name, "kind": kind, "was": ast.unparse(at),
                           "now": replacement, "old": [old_file, node.lineno, at.lineno],
                           "new": [new_file, new_node.lineno, at.lineno + offset]})  # fmt: skip
        if len(chosen) == FAULTS:
            break
    return chosen


def seed(tree: Path, fault: dict[str, object], side: str) -> tuple[Path, str]:
    """The file to change, and its text with the fault."""
    name, line, _ = fault[side]
    path = tree / name
    text = path.read_text()
    function = next(
        node for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == fault["function"]
        and node.lineno == line
    )  # fmt: skip
    _, _, node, new = next(
        e for e in edits(function)
        if e[0] == fault["kind"] and ast.unparse(e[2]) == fault["was"] and e[3] == fault["now"]
    )  # fmt: skip
    return path, changed(text, node, new)


def tests_of(tree: Path, module: str) -> list[list[str]]:
    """Groups of tests: those that name the module, then the mirrored folders, inner ones first."""
    dotted = module.removesuffix(".py").replace("/", ".")
    files = sorted((tree / "tests").rglob("test_*.py"))
    naming = [str(p.relative_to(tree)) for p in files if dotted in p.read_text()]
    groups, folder = [naming] if naming else [], Path("tests") / Path(module).parent
    while folder != Path("tests"):
        inside = [str(folder)] if (tree / folder).is_dir() else []
        if inside:
            groups.append(inside)
        folder = folder.parent
    return groups


def run(tree: Path, faults: list[dict[str, object]], out: Path) -> None:
    side = "old" if "old" in out.name else "new"
    done = len(out.read_text().splitlines()) if out.exists() else 0
    for number, fault in enumerate(faults[done:], start=done):
        path, text = seed(tree, fault, side)
        original = path.read_text()
        path.write_text(text)
        found = ""
        try:
            for group in tests_of(tree, fault[side][0]):
                try:
                    tried = subprocess.run(
                        [sys.executable, "-m", "pytest", "-x", "-q", *group], cwd=tree,
                        capture_output=True, text=True, timeout=LIMIT_S, check=False,
                    )  # fmt: skip
                except subprocess.TimeoutExpired:
                    found = f"no end after {LIMIT_S} s: {group}"
                    break
                if tried.returncode not in (0, 5):
                    said = [
                        x for x in tried.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))
                    ]
                    found = said[0] if said else tried.stdout[-300:]
                    break
        finally:
            path.write_text(original)
        with out.open("a") as file:
            file.write(json.dumps({"fault": number, "found": found, **fault}) + "\n")


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    if command == "list":
        print(json.dumps(choose(Path(words[0]).resolve(), Path(words[1]).resolve()), indent=1))
    else:
        run(Path(words[0]).resolve(), json.loads(Path(words[1]).read_text()), Path(words[2]))
