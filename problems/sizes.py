"""One problem file, several sizes: the constants of a large GPU, or others in their place.

The text is edited where the syntax tree says and nowhere else, so that comments, spacing and
everything that a model will read stay as their author wrote them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from problems.errors import UsageError

Span = tuple[int, int]
"""First byte and the byte after the last, in the UTF-8 source."""

WEIGHT = "weight"
"""The key of an entry of `CASES` that names no constant."""
ON = "on"
"""Another one: the only size class that it is for."""
COUNTS = "counts"
"""And one more: what a foreign suite counts."""
_KEPT = 256
"""Problems whose texts are kept: each turn asks for those of its problem several times."""


class SizeClass(StrEnum):
    """Which of the sizes that a problem file declares are in force."""

    CPU = "cpu"
    GPU = "gpu"

    @classmethod
    def of(cls, device: str) -> SizeClass:
        """What suits `cpu` or `cuda:N`."""
        return cls.CPU if device == "cpu" else cls.GPU


class Metadata(NamedTuple):
    category: ast.Assign | None = None
    cpu_sizes: ast.Assign | None = None
    hidden_sizes: ast.Assign | None = None
    cases: ast.Assign | None = None


class DeclaredCase(NamedTuple):
    sizes: dict[str, str]
    """As Python text."""
    weight: float
    on: SizeClass | None
    """The only class that it is for; None: both."""
    counts: tuple[float, float, str] | None


@lru_cache(maxsize=_KEPT)
def with_sizes(
    source: str, size_class: SizeClass, hidden: int | None = None, case: int | None = None
) -> str:
    """The problem's source with one set of sizes in force and our metadata removed.

    `SizeClass.CPU` puts the values of the dict literal `CPU_SIZES` in place of those that the
    module-level constants of the same names have; `SizeClass.GPU` leaves the constants alone.
    `hidden` then puts in those of that entry of the list `HIDDEN_SIZES`, and `case` those of that
    entry of `CASES`. The statements `CATEGORY = "..."`, `CPU_SIZES = {...}`, `HIDDEN_SIZES =
    [{...}, ...]` and `CASES = [{...}, ...]` disappear in any case, unless the file reads these
    names itself. A source without them comes back unchanged.

    Raises `UsageError` for a size that no module-level assignment defines.
    """
    tree = parse(source)
    ours = metadata(tree)
    statements = [statement for statement in ours if statement is not None]
    if not statements:
        return source
    text = source.encode()
    starts = _line_starts(text)
    edits = [(span, "") for span in _removed_lines(tree, statements, text, starts)]
    for name, value in _sizes_in_force(ours, size_class, hidden, case).items():
        for node in _values(tree, name):
            edits.append((_span(node, starts), ast.unparse(value)))
    for (start, end), replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement.encode() + text[end:]
    return text.decode()


def parse(source: str, name: str = "the problem") -> ast.Module:
    """The syntax tree. Raises `UsageError` that names the line where the source is not Python."""
    try:
        return ast.parse(source)
    # ValueError: null bytes, before Python 3.12.
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        what = getattr(error, "msg", str(error)) or "nested too deeply"
        raise UsageError(
            f"{name}: line {line}: {what}; fix the file, it is not valid Python"
        ) from None


@lru_cache(maxsize=_KEPT)
def count_hidden_sizes(source: str) -> int:
    statement = metadata(parse(source)).hidden_sizes
    return len(_tables(statement)) if statement is not None else 0


@lru_cache(maxsize=_KEPT)
def declared_cases(source: str) -> tuple[DeclaredCase, ...]:
    """What each entry of `CASES` says. Raises `UsageError`."""
    statement = metadata(parse(source)).cases
    if statement is None:
        return ()
    if not isinstance(statement.value, ast.List) or not statement.value.elts:
        raise UsageError(
            f'line {statement.lineno}: CASES is no list of sizes; write CASES = [{{"NAME": value}}]'
        )
    return tuple(_declared_case(table) for table in statement.value.elts)


def _declared_case(table: ast.expr) -> DeclaredCase:
    sizes = _sizes(table)
    on = ast.literal_eval(sizes.pop(ON, ast.Constant(None)))
    if on not in (None, *SizeClass):
        raise UsageError(f'line {table.lineno}: a case is on {on!r}; write "cpu" or "gpu"')
    counts = ast.literal_eval(sizes.pop(COUNTS, ast.Constant(None)))
    weight = sizes.pop(WEIGHT, ast.Constant(1))
    value = weight.value if isinstance(weight, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise UsageError(
            f"line {table.lineno}: a case has the weight {ast.unparse(weight)};"
            " give a positive number"
        )
    if not sizes:
        raise UsageError(
            f'line {table.lineno}: a case without sizes; write {{"NAME": value, "weight": 1}}'
        )
    named = {name: ast.unparse(size) for name, size in sizes.items()}
    return DeclaredCase(named, float(value), SizeClass(on) if on else None, counts)


def metadata(tree: ast.Module) -> Metadata:
    """The statements of a problem file that are ours.

    A plain KernelBench file may use these names for something of its own: what the file reads, or
    what has another type, is not ours.
    """
    read = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    found: dict[str, ast.Assign] = {}
    for name, statement in _assignments(tree):
        if name in read:
            continue
        if not isinstance(statement, ast.Assign):
            if name == "CASES":
                raise UsageError(f"line {statement.lineno}: CASES has a type; write CASES = [...]")
            continue
        is_text = isinstance(statement.value, ast.Constant) and isinstance(
            statement.value.value, str
        )
        is_table = isinstance(statement.value, ast.Dict)
        is_list = isinstance(statement.value, ast.List)
        if (name, True) in (
            ("CATEGORY", is_text),
            ("CPU_SIZES", is_table),
            ("HIDDEN_SIZES", is_list),
            # What else is in it is a mistake, since no case would count.
            ("CASES", True),
        ):
            found[name] = statement
    return Metadata(*map(found.get, ("CATEGORY", "CPU_SIZES", "HIDDEN_SIZES", "CASES")))


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.Assign | ast.AnnAssign]]:
    """Module-level `name = value` and `name: type = value`, with one plain name each."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target = statement.target
        else:
            continue
        if isinstance(target, ast.Name):
            yield target.id, statement


def _sizes_in_force(
    ours: Metadata, size_class: SizeClass, hidden: int | None, case: int | None
) -> dict[str, ast.expr]:
    sizes: dict[str, ast.expr] = {}
    if ours.cpu_sizes is not None and size_class is SizeClass.CPU:
        sizes |= _sizes(ours.cpu_sizes.value)
    if ours.hidden_sizes is not None and hidden is not None:
        sizes |= _sizes(_tables(ours.hidden_sizes)[hidden])
    if ours.cases is not None and case is not None:
        sizes |= _sizes(_tables(ours.cases)[case])
        for key in (WEIGHT, ON, COUNTS):
            sizes.pop(key, None)
    return sizes


def _tables(statement: ast.Assign) -> list[ast.expr]:
    assert isinstance(statement.value, ast.List)
    return statement.value.elts


def _sizes(table: ast.expr) -> dict[str, ast.expr]:
    sizes: dict[str, ast.expr] = {}
    keys = table.keys if isinstance(table, ast.Dict) else [None]
    values = table.values if isinstance(table, ast.Dict) else [table]
    for key, value in zip(keys, values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            raise UsageError(
                f"line {table.lineno}: sizes have a key that is no string;"
                ' write {"NAME": value, ...}'
            )
        sizes[key.value] = value
    return sizes


def _values(tree: ast.Module, name: str) -> list[ast.expr]:
    values = [
        statement.value
        for other, statement in _assignments(tree)
        if other == name and statement.value is not None
    ]
    if not values:
        raise UsageError(
            f"the sizes name {name!r}, which no module-level assignment defines;"
            f" add `{name} = ...` or take the key out"
        )
    return values


def _line_starts(text: bytes) -> list[int]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _span(node: ast.expr | ast.stmt, starts: list[int]) -> Span:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return (
        starts[node.lineno - 1] + node.col_offset,
        starts[node.end_lineno - 1] + node.end_col_offset,
    )


def _removed_lines(
    tree: ast.Module, statements: list[ast.Assign], text: bytes, starts: list[int]
) -> list[Span]:
    """The lines of these statements, and the blank ones after them that would double others."""
    lines: set[int] = set()
    for statement in statements:
        assert statement.end_lineno is not None
        first, last = statement.lineno, statement.end_lineno
        for other in tree.body:
            if other is not statement and other.lineno <= last and (other.end_lineno or 0) >= first:
                raise UsageError(
                    f"line {first}: CATEGORY and sizes need lines of their own;"
                    " put the other statement on another line"
                )
        lines.update(range(first, last + 1))
    blank_before = True
    for number in range(1, len(starts)):
        if number in lines:
            continue
        blank = not text[starts[number - 1] : starts[number]].strip()
        if blank and blank_before and number - 1 in lines:
            lines.add(number)
        blank_before = blank
    return [(starts[number - 1], starts[number]) for number in sorted(lines)]
