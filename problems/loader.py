"""Where problems are found: our own levels, a folder in KernelBench's format, a file.

Nothing of a problem is executed here: what the loader knows, it reads from the syntax tree.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from problems import kernelbench_x
from problems.bound_names import bound_names
from problems.case import cases_of
from problems.category import derive_category
from problems.errors import UnknownProblemError, UsageError
from problems.problem import Problem
from problems.sizes import SizeClass, metadata, parse
from problems.source_file import read_source

OUR_SUITE = "refinery"
DEMO: tuple[str, ...] = (
    "level1_7_rms_norm",
    "level1_15_diag_matmul",
    "level2_1_bias_swish_gate_residual",
)
"""What the main job works on where no problem is named."""

_LEVEL = re.compile(r"level_?(\d+)", re.IGNORECASE)
_FILE = re.compile(r"(\d+)_(.+)")
_NEEDED = ("Model", "get_inputs", "get_init_inputs")


@dataclass(frozen=True)
class _Entry:
    path: Path
    suite: str
    level: int
    number: int
    stem: str

    @property
    def id(self) -> str:
        return f"level{self.level}_{_safe(self.stem)}" if self.level else _safe(self.stem)

    @property
    def name(self) -> str:
        return self.stem.partition("_")[2] if self.level else self.stem

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other ways to call it; those without a level may be shared with other problems."""
        return (
            self.id,
            f"level{self.level}/{self.stem}",
            f"{self.level}/{self.stem}",
            f"level{self.level}/{self.number}",
            f"{self.level}/{self.number}",
            f"level{self.level}_{self.number}",
            self.stem,
            self.name,
        )


def load_suite(suite: Path | None = None) -> list[Problem]:
    """All problems of a suite, by level and number; None is our own.

    A suite is a folder with `level{L}/{number}_{name}.py` in it, or `kernelbench-x:DIR`, a checkout
    of that suite, whose tasks are recorded where they are not yet. Raises `UsageError` for a suite
    that can't be found or read and for a file that is no problem.
    """
    return [_read(entry) for entry in _recorded(suite, [*_entries(suite)])]


def load_problem(ref: str, suite: Path | None = None, *, files: bool = True) -> Problem:
    """One problem by id, by alias or, unless `files` is false, by path.

    `ref` is an id (`level1_19_relu`), an alias (`1/19`, `level1/19_relu`, or the bare name where
    only one problem of the suite has it; case does not matter), or the path of a file. A file
    under a folder `level{L}` keeps its suite, level and number; any other is a lone file, whose
    id is its stem and whose level is 0. Raises `UnknownProblemError` for a name that the suite does
    not have, and `UsageError` for what else can't be found or read.
    """
    if files and (path := Path(ref).expanduser()).is_file():
        return _read(_entry_at(path))
    entries = list(_entries(suite))
    wanted = ref.removesuffix(".py").lower()
    found = [e for e in entries if wanted in {alias.lower() for alias in e.aliases}]
    if len(found) == 1:
        for entry in _recorded(suite, found):
            return _read(entry)
        raise UsageError(f"{ref} cannot be judged, as the line above says; name another problem")
    where = _suite_name(suite)
    if found:
        shared = ", ".join(entry.id for entry in found[:4])
        raise UsageError(
            f"{ref!r} is the name of {len(found)} problems of {where}; give one id: {shared}"
        )
    if files and path.suffix == ".py":
        raise UsageError(f"no such file: {ref}; check the path, or give a problem's id")
    names = {alias.lower(): entry.id for entry in entries for alias in entry.aliases}
    near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
    ids = list(dict.fromkeys(names[name] for name in near))
    hint = f"did you mean {' or '.join(ids)}?" if ids else "`kernel-refinery problems` names all"
    raise UnknownProblemError(f"no problem {ref!r} in {where}; {hint}")


def select(
    problems: Iterable[Problem],
    level: int | None = None,
    filter: str | None = None,
    limit: int | None = None,
) -> list[Problem]:
    """Those problems that fit every condition given, in their order; possibly none.

    `filter` is a regular expression, searched for in the id and in the category without regard to
    case. `limit` keeps the first ones. Raises `UsageError` for an invalid expression.
    """
    try:
        pattern = re.compile(filter or "", re.IGNORECASE)
    except re.error as error:
        raise UsageError(
            f"--filter {filter!r} is no regular expression ({error}); put \\ before a special"
            " character"
        ) from None
    chosen = [
        problem
        for problem in problems
        if (level is None or problem.level == level)
        and (pattern.search(problem.id) or pattern.search(problem.category))
    ]
    return chosen if limit is None else chosen[: max(limit, 0)]


def _suite_name(suite: Path | None) -> str:
    if kernelbench_x.folder_of(suite) is not None:
        return kernelbench_x.SUITE
    return OUR_SUITE if suite is None else suite.resolve().name or str(suite)


def _recorded(suite: Path | None, entries: list[_Entry]) -> list[_Entry]:
    """With the problem files that tasks of a foreign suite became; without those that can't."""
    checkout = kernelbench_x.folder_of(suite)
    if checkout is None:
        return entries
    files = kernelbench_x.problem_files(checkout, [entry.path for entry in entries])
    return [replace(entry, path=files[entry.stem]) for entry in entries if entry.stem in files]


def _entries(suite: Path | None) -> Iterator[_Entry]:
    if checkout := kernelbench_x.folder_of(suite):
        for task in kernelbench_x.tasks_in(checkout):
            yield _Entry(task, kernelbench_x.SUITE, 0, 0, task.stem)
        return
    folder = Path(__file__).parent if suite is None else suite.expanduser()
    if not folder.is_dir():
        raise UsageError(
            f"no such suite: {folder} is no folder; --suite takes one with level1/ ..."
        )
    levels = [
        (int(match[1]), path)
        for path in folder.iterdir()
        if path.is_dir() and (match := _LEVEL.fullmatch(path.name))
    ]
    if not levels:
        raise UsageError(
            f"{folder} has no folder level1, level2, ...; give the folder that holds them"
            " (KernelBench's is KernelBench/KernelBench)"
        )
    for level, path in sorted(levels):
        yield from _entries_of_level(_suite_name(suite), level, path)


def _entries_of_level(suite: str, level: int, folder: Path) -> Iterator[_Entry]:
    found = [
        (int(match[1]), path)
        for path in folder.glob("*.py")
        if (match := _FILE.fullmatch(path.stem))
    ]
    for number, path in sorted(found):
        yield _Entry(path, suite, level, number, path.stem)


def _entry_at(path: Path) -> _Entry:
    path = path.resolve()
    level, file = _LEVEL.fullmatch(path.parent.name), _FILE.fullmatch(path.stem)
    if level and file:
        ours = path.parent.parent == Path(__file__).resolve().parent
        suite = OUR_SUITE if ours else path.parent.parent.name
        return _Entry(path, suite, int(level[1]), int(file[1]), path.stem)
    return _Entry(path, path.parent.name, 0, 0, path.stem)


def problem_of(source: str, name: str) -> Problem:
    """A lone problem from its text. Raises `UsageError` where it is none."""
    return _problem(_Entry(Path(f"{_safe(name)}.py"), "", 0, 0, _safe(name)), source)


def _read(entry: _Entry) -> Problem:
    return _problem(entry, read_source(entry.path))


def _problem(entry: _Entry, source: str) -> Problem:
    tree = parse(source, str(entry.path))
    bound = bound_names(tree)
    missing = [name for name in _NEEDED if name not in bound]
    if missing:
        raise UsageError(
            f"{entry.path} defines no {' and no '.join(missing)}; a problem needs"
            " `class Model(nn.Module)`, `get_inputs()` and `get_init_inputs()`"
        )
    try:
        cases_of(source, SizeClass.GPU)  # where one is wrong, its author learns it here
    except (ValueError, OverflowError, RecursionError) as error:
        said = str(error).splitlines()[0][:200]
        raise UsageError(f"{entry.path}: CASES can't be read: {said}") from None
    declared = metadata(tree).category
    weights = entry.path.resolve().with_suffix(".safetensors")
    digest = hashlib.sha256(source.encode())
    if weights.is_file():
        with weights.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return Problem(
        id=entry.id,
        suite=entry.suite,
        level=entry.level,
        name=entry.name,
        category=ast.literal_eval(declared.value) if declared else derive_category(tree),
        path=entry.path.resolve(),
        source=source,
        weights=weights if weights.is_file() else None,
        hash=digest.hexdigest()[:16],
    )


def _safe(stem: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", stem)
