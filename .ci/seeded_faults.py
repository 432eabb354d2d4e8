"""Seed faults into code that two versions share, and see whether each version's tests find them.

    python .ci/seeded_faults.py list OLD NEW > faults.json    # 60 faults in functions of both trees
    python .ci/seeded_faults.py run TREE faults.json OUT.jsonl

OLD and NEW are checkouts. A fault turns a comparison round, leaves a call out, or changes a
constant. `run` goes on where it was interrupted, and has a worker for each two cores. It runs the
tests that name the changed module first, then those in the folder that mirrors its package.
"""

import ast
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PACKAGES = ("problems", "evaluator", "tools", "agent", "experiments")
LEFT_OUT = ("problems/level", "experiments/bench", "experiments/re", "agent/tuner")
FAULTS, SEED, LIMIT_S = 60, 66, 240
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
    """Groups of tests: of the module's name, that name it, and in mirrored folders, inner first."""
    dotted = module.removesuffix(".py").replace("/", ".")
    files = sorted((tree / "tests").rglob("test_*.py"))
    naming = [p for p in files if dotted in p.read_text()]
    own = [p for p in naming if p.stem.startswith(f"test_{Path(module).stem}")]
    groups = [
        [str(p.relative_to(tree)) for p in paths]
        for paths in (own, [p for p in naming if p not in own])
        if paths
    ]
    folder = Path("tests") / Path(module).parent
    while folder != Path("tests"):
        inside = [str(folder)] if (tree / folder).is_dir() else []
        if inside:
            groups.append(inside)
        folder = folder.parent
    return groups


def outcome(tree: Path, words: list[str], env: dict[str, str], limit_s: float) -> list[str] | None:
    """The tests that failed; none where all passed; None where the time was up."""
    command = [*env["WITH"].split(), sys.executable, "-m", "pytest", "-x", "-q", *words]
    with tempfile.TemporaryFile("w+") as printed:
        tried = subprocess.Popen(
            command, cwd=tree, env=env, stdout=printed, stderr=printed, start_new_session=True
        )
        try:
            code = tried.wait(timeout=max(1, limit_s))
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(tried.pid, signal.SIGKILL)
            tried.wait()
        printed.seek(0)
        said = [
            line for line in printed.read().splitlines() if line.startswith(("FAILED", "ERROR"))
        ]
    if code in (0, 5):
        return []
    return [line.split(" ", 1)[1].split(" - ")[0] for line in said] or ["no test"]


def look(
    tree: Path, fault: dict[str, object], side: str, env: dict[str, str], broken: list[str]
) -> dict[str, object]:
    """Whether a test finds the fault: one that passes without it, and fails or hangs with it.

    Tests that fail without it, too, join `broken`.
    """
    path, text = seed(tree, fault, side)
    original = path.read_text()
    ends, groups = time.monotonic() + LIMIT_S, tests_of(tree, fault[side][0])
    for number, group in enumerate(groups):
        while True:
            without = [f"--{'deselect' if '::' in test else 'ignore'}={test}" for test in broken]
            words = [*group, *without]
            path.write_text(text)
            try:
                failed = outcome(tree, words, env, ends - time.monotonic())
            finally:
                path.write_text(original)
            if failed is None and number:
                return {"found": "", "tried": groups[: number + 1], "time_up": True}
            if failed == []:
                break
            again = outcome(tree, words if failed in (None, ["no test"]) else failed, env, LIMIT_S)
            if again == []:
                return {"found": failed[0] if failed else f"no end: {group}"}
            if failed is None or failed == ["no test"] or failed[0] in broken:
                return {"found": "", "tried": groups[: number + 1], "unclear": True}
            broken += failed
    return {"found": "", "tried": groups}


def work(tree: Path, cores: str, waiting: list[tuple[int, dict[str, object]]], out: Path) -> None:
    """One of several workers: a copy of the tree, two cores and device locks of its own."""
    side = "old" if "old" in out.name else "new"
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(
            tree,
            copy,
            symlinks=True,
            ignore=shutil.ignore_patterns(".git", ".venv", ".before", ".wheels", "runs"),
        )
        (Path(folder) / "locks").mkdir()
        env = dict(os.environ, CUDA_VISIBLE_DEVICES="",
                   KERNEL_REFINERY_LOCKS=f"{folder}/locks", PYTHONPATH=str(copy),
                   WITH=f"taskset -c {cores}")  # fmt: skip
        broken: list[str] = []
        while waiting:
            index, fault = waiting.pop(0)
            line = {"fault": index, **look(copy, fault, side, env, broken), **fault}
            with out.open("a") as file:
                file.write(json.dumps(line) + "\n")


def run(tree: Path, faults: list[dict[str, object]], out: Path) -> None:
    done = (
        {json.loads(line)["fault"] for line in out.read_text().splitlines()} if out.exists() else ()
    )
    waiting = [(index, fault) for index, fault in enumerate(faults) if index not in done]
    cores = sorted(os.sched_getaffinity(0))
    pairs = [f"{one},{other}" for one, other in zip(cores[::2], cores[1::2], strict=False)]
    with ThreadPoolExecutor(len(pairs)) as pool:
        for each in [pool.submit(work, tree, pair, waiting, out) for pair in pairs]:
            each.result()


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    if command == "list":
        print(json.dumps(choose(Path(words[0]).resolve(), Path(words[1]).resolve()), indent=1))
    else:
        run(Path(words[0]).resolve(), json.loads(Path(words[1]).read_text()), Path(words[2]))
