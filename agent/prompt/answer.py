"""The kernel in a model's answer: found by parsing, never by running it.

An answer is meant to be one fenced Python block. Models also send several blocks, other tags or
none, fences inside docstrings, tildes, no fence at all, or half a file because their tokens ran
out. Whatever parses as Python and defines `ModelNew`, or a function that the problem asks for, is
taken; otherwise `Extraction.problem` tells the model what to send.
"""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from problems.bound_names import bound_names

WANTED = "ModelNew"
FORM = (
    "Send one fenced block tagged python that holds the whole file: the imports, the kernels and "
    f"`class {WANTED}(nn.Module)`."
)

_FENCE = re.compile(r"^(\s*(?:(?:[-*+]|\d+[.)])\s+)?)(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_PLAN = re.compile(r"^[ \t]*#[ \t]*plan[ \t]*:[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)
_PYTHON_TAGS = frozenset({"", "python", "python3", "py", "py3", "python-repl", "ipython"})
_MOST_PLAN_CHARACTERS = 300
_MOST_QUOTED_CHARACTERS = 160
_MOST_CLOSINGS = 16  # fences that one docstring may hold before we stop looking past them
_MOST_PARSED = 4_000_000  # characters; bounds the work on an answer made of fences
_parse_lock = threading.Lock()  # `warnings.catch_warnings` changes the whole process


@dataclass(frozen=True)
class Extraction:
    source: str | None
    """A Python file that defines `ModelNew`; None where the answer held none."""
    problem: str
    """Empty with a source; else what is missing, in words that tell the model what to send."""
    plan: str = ""
    """Text of the first `# plan:` line of the source (of the answer where there is no source)."""


@dataclass(frozen=True)
class _Block:
    tag: str
    text: str
    raw: str  # as it stands in the answer, for a file that goes on in the next block
    closed: bool
    tree: ast.Module | None


class _Parser:
    """`ast.parse` that answers None instead of raising, and does a bounded amount of work."""

    def __init__(self, wanted: frozenset[str] = frozenset({WANTED})) -> None:
        self.wanted = wanted
        self.left = _MOST_PARSED
        self.first_error = ""

    def parse(self, text: str) -> ast.Module | None:
        if self.left <= 0:
            return None
        self.left -= len(text) + 1000
        with _parse_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a kernel's string is no concern
            try:
                return ast.parse(text)
            except SyntaxError as error:
                self.first_error = self.first_error or f"line {error.lineno}: {error.msg}"
            except (ValueError, RecursionError, MemoryError) as error:
                self.first_error = self.first_error or (str(error) or "nested too deeply")
        return None

    def defines(self, tree: ast.Module | None) -> bool:
        return not self.wanted.isdisjoint(bound_names(tree))


def extract(text: str, finish_reason: str, functions: Sequence[str] = ()) -> Extraction:
    """Find the file that defines `ModelNew` in a model's answer. Never raises, never executes.

    `finish_reason` is the provider's: `length` means that the token limit cut the answer off.
    Where several blocks define `ModelNew`, the last one wins; names that it lacks are taken from
    the other Python blocks of the same answer. Any of `functions` is as good as `ModelNew`.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    parser = _Parser(frozenset({WANTED, *functions}))
    blocks = list(_blocks(text, parser))
    source = _bare_file(text, parser) or _from_blocks(blocks, parser)
    if source is not None:
        return Extraction(source=source, problem="", plan=_plan(source))
    problem = _problem(text, finish_reason, blocks)
    if functions:
        problem += f" The function `{functions[0]}` is as good as `{WANTED}`."
    return Extraction(source=None, problem=problem, plan=_plan(text))


def _plan(source: str) -> str:
    found = _PLAN.search(source)
    return found.group(1).strip()[:_MOST_PLAN_CHARACTERS] if found else ""


# Blocks


def _blocks(text: str, parser: _Parser) -> Iterator[_Block]:
    lines = text.split("\n")
    fences = [(i, found) for i, line in enumerate(lines) if (found := _FENCE.match(line))]
    start = 0
    while start < len(fences) and parser.left > 0:
        first, opening = fences[start]
        later = (k for k in range(start + 1, len(fences)) if _closes(fences[k][1], opening))
        closings = list(islice(later, _MOST_CLOSINGS))
        # A fence that stands inside a docstring closes nothing: the block ends at the first fence
        # at which it is Python.
        chosen, block = None, None
        for k in closings:
            block = _block(lines[first + 1 : fences[k][0]], opening, True, parser)
            if block.tree is not None:
                chosen = k
                break
        if chosen is None:
            end = fences[closings[0]][0] if closings else len(lines)
            block = _block(lines[first + 1 : end], opening, bool(closings), parser)
            chosen = closings[0] if closings else len(fences)
            # Not Python, but another block may begin inside: a quoted answer, a forgotten fence.
            inner = (k for k in range(start + 1, chosen) if fences[k][1].group(3).strip())
            chosen = next(inner, chosen + 1) - 1
        assert block is not None
        yield block
        start = chosen + 1


def _closes(fence: re.Match[str], opening: re.Match[str]) -> bool:
    mark, wanted = fence.group(2), opening.group(2)
    return mark[0] == wanted[0] and len(mark) >= len(wanted) and not fence.group(3).strip()


def _block(lines: list[str], opening: re.Match[str], closed: bool, parser: _Parser) -> _Block:
    indent = len(opening.group(1))
    text = "\n".join(line[min(indent, len(line) - len(line.lstrip())) :] for line in lines)
    if not closed:
        text = text.rstrip().rstrip("`")  # the closing fence may follow the last statement
    tag = (opening.group(3).strip().split() or [""])[0].strip("{}.").lower()
    raw = text.strip("\n") + "\n"
    tree = parser.parse(text)
    if tree is None and (dedented := textwrap.dedent(text)) != text:
        tree = parser.parse(dedented)
        text = dedented if tree is not None else text
    return _Block(tag=tag, text=text.strip("\n") + "\n", raw=raw, closed=closed, tree=tree)


# Choosing


def _bare_file(text: str, parser: _Parser) -> str | None:
    """The answer itself, or what follows its `# plan:` line, when that is a Python file."""
    found = _PLAN.search(text)
    for part in (text, text[found.start() :] if found and found.start() else ""):
        # A lone `~~~python` parses as an expression, so tildes never begin a bare file.
        if not any(name in part for name in parser.wanted) or part.lstrip().startswith("~~~"):
            continue
        tree = parser.parse(part)
        if parser.defines(tree):
            return part.strip("\n") + "\n"
    return None


def _from_blocks(blocks: list[_Block], parser: _Parser) -> str | None:
    parsed = [block for block in blocks if block.tree is not None and block.text.strip()]
    holders = [i for i, block in enumerate(parsed) if parser.defines(block.tree)]
    if holders:
        chosen = _with_what_it_needs(parsed, holders[-1])
        return "\n".join(parsed[i].text for i in sorted(chosen))
    # A file that was cut in the middle of a statement and goes on in the next block.
    pieces = [block.raw for block in blocks if block.tag in _PYTHON_TAGS]
    if len(pieces) > 1 and parser.defines(parser.parse(whole := "".join(pieces))):
        return whole
    return None


def _with_what_it_needs(blocks: list[_Block], holder: int) -> set[int]:
    """Indices of the blocks that make `holder` whole: those that bind names which it only uses."""
    chosen, open_ends = {holder}, [holder]
    while open_ends:
        at = open_ends.pop()
        for name in _unbound(blocks[at].tree):
            # The nearest block before, else the nearest one after.
            order = [*range(at - 1, -1, -1), *range(at + 1, len(blocks))]
            found = next((i for i in order if name in bound_names(blocks[i].tree)), None)
            if found is not None and found not in chosen:
                chosen.add(found)
                open_ends.append(found)
    return chosen


def _unbound(tree: ast.Module | None) -> list[str]:
    """Names that a module reads and binds nowhere, in order of their text."""
    read: set[str] = set()
    bound: set[str] = set(dir(builtins))
    for node in ast.walk(tree) if tree is not None else ():
        match node:
            case ast.Name(ctx=ast.Load()):
                read.add(node.id)
            case ast.Name():
                bound.add(node.id)
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                bound.add(node.name)
            case ast.alias():
                bound.add(node.asname or node.name.split(".")[0])
            case ast.arg():
                bound.add(node.arg)
            case ast.ExceptHandler(name=str(name)):
                bound.add(name)
    return sorted(read - bound)


# What is missing


def _problem(text: str, finish_reason: str, blocks: list[_Block]) -> str:
    if finish_reason == "length":
        return (
            "The answer was cut off by the token limit before the file was complete. Send only "
            f"the code, with little or no text around it, and a shorter file. {FORM}"
        )
    if finish_reason == "content_filter":
        return f"The provider's content filter stopped the answer. {FORM}"
    if not text.strip():
        return f"The answer was empty. {FORM}"
    blocks = [block for block in blocks if block.text.strip()]
    if not blocks:
        said = " ".join(text.split()).partition(". ")[0].rstrip(".")[:_MOST_QUOTED_CHARACTERS]
        return f'The answer held no code block, and began "{said}". {FORM}'
    python = [block for block in blocks if block.tag in _PYTHON_TAGS]
    meant = next((block for block in reversed(python) if WANTED in block.text), None)
    if meant is not None and meant.tree is None:
        error = _Parser()
        error.parse(meant.text)
        end = "" if meant.closed else ", and the block has no closing fence"
        return f"The Python block does not parse ({error.first_error}){end}. {FORM}"
    classes = sorted(
        {
            node.name
            for block in blocks
            if block.tree is not None
            for node in block.tree.body
            if isinstance(node, ast.ClassDef)
        }
    )
    if classes:
        named = ", ".join(f"`{name}`" for name in classes[:5])
        return f"The code defines {named}, but no top-level class `{WANTED}`. {FORM}"
    if not python:
        return (
            f"The answer held no Python, only `{blocks[-1].tag[:20]}`. C++, CUDA or Triton source "
            f"belongs into a string or a decorated function of one Python file. {FORM}"
        )
    return f"No code block defines a top-level class `{WANTED}`. {FORM}"


_MARKS = ("```", "~~~")
_MOST_LOOKS = 32
"""At fences of one answer. Each reads the whole text, and some models repeat themselves."""
_MOST_KERNELS = 4
"""Of one answer: each takes a builder from others, and only the last one is judged."""


class AnswerSoFar:
    """Hands on the kernel of an answer as soon as its block is closed.

    Each time the text has a new fence, what stands before it is read as a whole answer is. A later
    block may replace the kernel, which then is handed on as well. Of an answer with very many
    fences or kernels only the first ones are.
    """

    def __init__(self, take: Callable[[str], None], functions: Sequence[str] = ()) -> None:
        """`take` is given the source of each kernel, once; `functions` are those of `extract`."""
        self._take = take
        self._functions = functions
        self._read = 0
        self._looks = 0
        self._taken: set[str] = set()

    def __call__(self, text: str) -> None:
        """Look at `text`, all that there is of the answer."""
        if self._looks == _MOST_LOOKS or len(self._taken) == _MOST_KERNELS:
            return
        end = max(text.rfind(mark) for mark in _MARKS) + len(_MARKS[0])
        if end == self._read:
            return
        self._read = end
        fence = text[:end].rpartition("\n")[2]
        if fence.strip(" \t`~"):  # marks in the midst of a line
            return
        self._looks += 1
        source = extract(text[:end], "stop", self._functions).source
        if source is not None and source not in self._taken:
            self._taken.add(source)
            self._take(source)
