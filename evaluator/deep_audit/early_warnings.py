"""A reading of the source for what cheats and accidents often rest on.

They are words for a person, never a verdict. Every pattern here also occurs in honest kernels, and
an author can evade them (by `getattr`, by pasting tokens, by code made at run time). What the judge
measures decides.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from evaluator.candidate_tree import candidate_tree

_MOST_WARNINGS = 20
_MODULES = {
    "threading": "threads",
    "concurrent": "threads",
    "multiprocessing": "processes",
    "subprocess": "processes",
    "ctypes": "foreign functions (ctypes)",
    "cffi": "foreign functions (cffi)",
    "gc": "the garbage collector, which finds others' objects",
    "inspect": "inspection of frames or sources",
    "traceback": "inspection of frames or sources",
    "socket": "the network",
    "mmap": "memory maps",
    "signal": "signals",
    "time": "clocks",
    "atexit": "code that runs at exit",
    "importlib": "imports at run time",
}
_CALLS = {
    "exec": "code made at run time",
    "eval": "code made at run time",
    "__import__": "imports at run time",
    "globals": "the interpreter's own tables",
    "_getframe": "inspection of frames or sources",
    "elapsed_time": "clocks",
    "perf_counter": "clocks",
    "set_num_threads": "settings of the whole process",
    "manual_seed": "the random generators' state",
    "get_rng_state": "the random generators' state",
    "system": "processes",
    "popen": "processes",
    "fork": "processes",
}
_TEXTS = (
    (r"\bstd::(?:thread|jthread|async)\b|\bpthread_create\b", "threads of its own in C++"),
    (r"\bstd::chrono\b|\bclock_gettime\b|\b__?rdtscp?\b|\bclock64\s*\(", "clocks in C++"),
    (r"\bgetenv\b|\benviron\b", "environment variables in C++"),
    (r"\b(?:dlopen|dlsym)\s*\(", "functions found by name at run time"),
    (r"\b(?:fopen|ifstream|ofstream|open)\s*\(|/proc/", "files in C++"),
    (r"\b(?:fork|execve?|system|popen)\s*\(", "processes in C++"),
    (r"\b(?:mprotect|ptrace|process_vm_\w+)\s*\(", "memory of the process itself"),
    (r"\bcudaStreamCreate\w*", "CUDA streams of its own"),
    (r"\bcudaGraph\w*", "CUDA graphs"),
    (r"\bcudaIpc\w*|\bcuMemGetAddressRange\w*", "device memory of others"),
    (r"\bcudaEvent(?:ElapsedTime|Record)\b", "CUDA's timers"),
    (r"\bcublas\w+|\bcudnn\w+|\bcblas_\w+|\b[sd]gemm_\b", "a library's kernels in C++"),
    (r"\b(?:at|torch)::(?:mm|matmul|bmm|addmm|conv\w*|linear|softmax)\b", "PyTorch's operators "
     "in C++"),
)  # fmt: skip
_JOINS = re.compile(
    r"\.join\s*\(|StreamSynchronize|StreamWaitEvent|DeviceSynchronize|\.get\s*\(\)|wait_stream|"
    r"synchronize\s*\("
)
# One that nothing closes goes on to the end: looking for its end again and again takes minutes.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)


def early_warnings(source: str) -> tuple[str, ...]:
    """What stands out in a candidate's Python source and in the C++ that it holds as text.

    Nothing for what is not Python, or is beyond the limits of `candidate_tree`.
    """
    tree = candidate_tree(source)
    if tree is None:
        return ()
    found = [*_python(tree), *_native(tree)]
    return tuple(dict.fromkeys(found))[:_MOST_WARNINGS]


def _python(tree: ast.Module) -> Iterator[str]:
    kept = _kept(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield from _of_module(alias.name, line)
            case ast.ImportFrom(module=str(module)):
                yield from _of_module(module, line)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if name in _CALLS:
                    yield f"line {line}: uses {_CALLS[name]} ({name})"
                elif name == "data_ptr" and id(node) in kept:
                    yield f"line {line}: remembers by address (data_ptr)"
                elif name == "Stream":
                    yield f"line {line}: CUDA streams of its own"
            case ast.Attribute(value=ast.Name(id="os"), attr="environ" | "getenv"):
                yield f"line {line}: reads environment variables"
            case ast.Assign(targets=targets):
                for target in targets:
                    yield from _of_assignment(target, line)
            case ast.Try():
                if _calls_anything(node.body):
                    yield f"line {line}: try/except, behind which a failing kernel may hide"
            case ast.ClassDef(name="ModelNew", bases=bases):
                if any(isinstance(base, ast.Name) and base.id == "Model" for base in bases):
                    yield f"line {line}: ModelNew inherits from Model"


def _of_module(name: str, line: int) -> Iterator[str]:
    use = _MODULES.get(name.partition(".")[0])
    if use:
        yield f"line {line}: uses {use} ({name})"


def _of_assignment(target: ast.expr, line: int) -> Iterator[str]:
    """An attribute set on a module that everybody shares: `torch.allclose = ...`."""
    if not isinstance(target, ast.Attribute):
        return
    root: ast.expr = target
    while isinstance(root, ast.Attribute):
        root = root.value
    if isinstance(root, ast.Name) and root.id in ("torch", "np", "numpy", "sys", "builtins", "F"):
        yield f"line {line}: changes what everybody shares ({ast.unparse(target)})"


def _kept(tree: ast.Module) -> set[int]:
    """The ids of nodes whose value is a key, compared or kept, rather than handed to a kernel."""
    kept: set[int] = set()
    for node in ast.walk(tree):
        # A node comes after the one that it is part of.
        if id(node) in kept:
            parts: list[ast.AST] = list(ast.iter_child_nodes(node))
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Subscript):
            parts = [node.slice]
        elif isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call):
            parts = [node.value]
        else:
            parts = []
        kept.update(map(id, parts))
    return kept


def _calls_anything(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Call) for statement in body for node in ast.walk(statement))


def _native(tree: ast.Module) -> Iterator[str]:
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    code = "\n".join(_COMMENT.sub(" ", text) for text in texts if "{" in text and ";" in text)
    for pattern, what in _TEXTS:
        match = re.search(pattern, code)
        if match:
            yield f"uses {what} ({match[0].strip('( ')})"
    used = " ".join(f".{node.attr}()" for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    started = re.search(r"std::j?thread|pthread_create|StreamCreate|\.Stream\(", code + used)
    if started and not _JOINS.search(code + used):
        yield "starts threads or streams that nothing seems to wait for"
