"""KernelBench-X (arXiv 2605.04956): a checkout, whose tasks become problems of ours.

A file of `data/kernelbenchx/CATEGORY/` holds a function, a line of 146 `#`, and a test that runs
when the file is imported; `metrics/golden_metrics/NAME_perf.py` holds a sweep of sizes. Nothing of
this is run here: another process records what the function is called with (`evaluator.recorder`),
once for each version of a task, and the problem files that it writes are kept in the cache.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from problems.cache_folder import cache_folder
from problems.errors import UsageError
from problems.function import SEPARATOR
from problems.source_file import read_source

SUITE = "kernelbench-x"
_PREFIX = f"{SUITE}:"
SUITE_HELP = f"A folder of problems in KernelBench's format, or {_PREFIX}CHECKOUT."
_PLACES = (
    ("data/kernelbenchx", "metrics/golden_metrics", "data/kernelbenchx_v1.json"),
    ("tasks", "performance", "tasks.json"),
)
"""Of tasks, sweeps and descriptions: in a checkout, and in a copy of a part of it."""
_TOLD = {
    "signature": "func_inputs",
    "description": "description",
    "formula": "math",
    "example": "example",
    "notes": "other",
}
_LINE_BREAK = re.compile(r"\\n(?!abla|eq\b|e\b|u\b)")
"""Written as two characters, unlike the words of LaTeX that begin with them."""
_USUAL = {"cosine_sim": 0.99, "l1_relative": 0.01, "rmse": 0.01}
"""What a task with thresholds leaves out."""


@dataclass(frozen=True)
class TaskFiles:
    """What there is to be recorded of a task."""

    category: str
    reference: str
    test: str
    performance: str
    words: str
    """Signature, description and example as the suite has them."""
    thresholds: dict[str, float]
    """How far a quantised task's outputs may be off; else empty."""
    target: str
    """The problem file that is to be made, named as the task is."""


def folder_of(suite: Path | None) -> Path | None:
    """The checkout that `kernelbench-x:DIR` names; None for any other suite."""
    text = str(suite or "")
    return Path(text.removeprefix(_PREFIX)).expanduser() if text.startswith(_PREFIX) else None


def tasks_in(folder: Path) -> list[Path]:
    """By category and name, which is the problem's id. Raises `UsageError` for what is no checkout
    of the suite."""
    tasks, *_ = _places(folder)
    return sorted(tasks.glob("*/*.py"))


def problem_files(folder: Path, tasks: Sequence[Path]) -> dict[str, Path]:
    """By name, the problem files of these tasks; those that can't be judged are named on stderr.

    Those that the cache lacks are recorded first, which takes some seconds each.
    """
    _, sweeps, descriptions = _places(folder)
    told = _told(descriptions)
    found: dict[str, Path] = {}
    waiting: list[TaskFiles] = []
    why: dict[str, str] = {}
    for task in tasks:
        category = task.parent.name
        try:
            text, performance = read_source(task), read_source(sweeps / f"{task.stem}_perf.py")
        except UsageError as error:
            why[task.stem] = str(error)
            continue
        reference, line, test = text.partition(SEPARATOR)
        if not line:
            why[task.stem] = "it has no line of 146 #: nothing says where its reference ends"
            continue
        words, thresholds = told.get(f"{category}/{task.name}", ("", {}))
        version = repr((_version(), text, performance, words, thresholds))
        place = cache_folder() / SUITE / hashlib.sha256(version.encode()).hexdigest()[:16]
        found[task.stem] = target = place / task.name
        if not any(target.with_suffix(end).is_file() for end in (".py", ".txt")):
            files = TaskFiles(
                category, reference, test, performance, words, thresholds, str(target)
            )
            waiting.append(files)
    _record(waiting)
    for name, path in found.items():
        if not path.is_file():
            kept = path.with_suffix(".txt")
            why[name] = kept.read_text() if kept.is_file() else "recording it ended early"
    for name, reason in why.items():
        print(f"{SUITE}: {name} cannot be judged: {reason}", file=sys.stderr)
    return {name: path for name, path in found.items() if name not in why}


def _places(folder: Path) -> tuple[Path, Path, Path]:
    for names in _PLACES:
        tasks, sweeps, descriptions = (folder / name for name in names)
        if tasks.is_dir():
            return tasks, sweeps, descriptions
    raise UsageError(
        f"{folder} is no checkout of KernelBench-X: it has no data/kernelbenchx; give"
        f" --suite {_PREFIX}DIR"
    )


def _told(path: Path) -> dict[str, tuple[str, dict[str, float]]]:
    """By file: what the suite says of its task, and its thresholds."""
    try:
        entries = json.loads(read_source(path)) if path.is_file() else []
        return {
            entry["file"]: (
                "\n".join(
                    f"{label.capitalize()}: {_LINE_BREAK.sub(chr(10), str(entry[key]))}"
                    for label, key in _TOLD.items()
                    if entry.get(key)
                ),
                _thresholds(entry.get("precision_thresholds")),
            )
            for entry in entries
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{path} can't be read ({error}): restore the suite's own file") from None


def _thresholds(given: dict[str, float] | None) -> dict[str, float]:
    return {name: float(given.get(name, usual)) for name, usual in _USUAL.items()} if given else {}


def _record(tasks: Sequence[TaskFiles]) -> None:
    if not tasks:
        return
    print(f"{SUITE}: recording the calls of {len(tasks)} tasks, once", file=sys.stderr)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "evaluator.recorder"],
        input="\n".join(json.dumps(asdict(task)) for task in tasks),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no words"])[-1]
        raise UsageError(f"the tasks of {SUITE} can't be recorded here: {said}")


def _version() -> str:
    """Of the code that makes problem files."""
    ours = [Path(__file__), *sorted(Path(__file__).parents[1].glob("evaluator/recorder/*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in ours)).hexdigest()
