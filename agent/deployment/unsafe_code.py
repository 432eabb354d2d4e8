"""What a kernel's text does that no kernel needs. A look at names: who means to get past it does.

A judged kernel ran behind walls; a loaded one has none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_MODULES = re.compile(
    r"(asyncio|builtins|code|concurrent|ctypes|cffi|ftplib|glob|http|importlib|io|mmap|pathlib|pty"
    r"|multiprocessing|pickle|requests|runpy|shutil|signal|socket|socketserver|ssl|subprocess"
    r"|tempfile|urllib)(\..*)?|torch\.(multiprocessing|distributed|hub|load|save)"
    r"|os\.(?!(environ|getenv|cpu_count|sched_getaffinity|path|getpid)\b).*"
)
_NAMES = re.compile(
    r"(open|eval|exec|compile|__import__|breakpoint|globals|vars|__builtins__)"
    r"|torch\.(load|save|hub|multiprocessing|distributed|package)\b.*|(np|numpy)\.(load|save)"
    r"|os\.(?!(environ|getenv|cpu_count|sched_getaffinity|path|getpid)\b).*|sys\.(modules|path).*"
    r"|.*\.(load_library|from_file|tofile|fromfile|memmap|__globals__|__subclasses__)"
)
_IN_C = re.compile(
    r"\b(system|popen|v?fork|exec[lv]\w*|posix_spawn\w*|socket|connect|dlm?open|f?open(64|at)?"
    r"|freopen|creat|syscall|unlink|rename|ptrace|kill)\s*\(|\b[io]?fstream\b|\bfilesystem::"
    r"|\bPyRun_\w+|\bpy::(eval|exec)\b|\bmodule_::import\b"
)
_ASSEMBLY = re.compile(r"\b(__)?asm\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def unsafe_code(source: str) -> str:
    """The first such thing, in words; empty where there is none."""
    return next(_found(source), "")


def _found(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found = [a.name for a in names if _MODULES.fullmatch(a.name)]
                found += [f"os as {a.asname}" for a in names if a.name == "os" and a.asname]
            case ast.ImportFrom(module=module, names=names):
                whole = [f"{module}.{alias.name}" for alias in names]
                found = [name for name in whole if _MODULES.fullmatch(name)]
            case ast.Name() | ast.Attribute():
                found = [name for name in [ast.unparse(node)] if _NAMES.fullmatch(name)]
            case ast.Constant(value=str(text)) if "{" in text:
                bare = _COMMENT.sub(" ", text)
                found = [match[0].rstrip("( ") for match in _IN_C.finditer(bare)]
                if _ASSEMBLY.search(bare) and "__global__" not in bare:
                    found.append("assembly")  # that of a GPU can't call the system
            case _:
                continue
        yield from (f"line {node.lineno} uses {name}" for name in found)
