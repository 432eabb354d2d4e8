"""`eval_results.json`: the verdicts on a folder of kernels as KernelBench writes its own.

An object by problem number, each with a list of entries, one for each sample; times in ms, -1 where
there is none. KernelBench's files are of one level each, and its analysis reads `sample_id`,
`compiled`, `correctness` and `runtime`; the rest of a verdict is under `metadata`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from evaluator.evaluation import Evaluation, Status
from evaluator.settings import BaselineName
from problems.errors import UsageError
from problems.plain_file import open_plain, write_plain

NAME = "eval_results.json"
_MOST_BYTES = 64 * 2**20
_JUDGE = "kernel-refinery"
_NOT_LOADED = {
    *("syntax_error", "no_model_new", "import_raised", "import_timeout"),
    *("build_timeout", "too_many_builds"),
}
"""Reasons that KernelBench counts as not compiled, beside a failed build."""
_NUMBER = "(0|[1-9][0-9]*)"
"""One spelling for each, so that no two files have the same name."""
_NAMED = re.compile(rf"level_{_NUMBER}_problem_{_NUMBER}_sample_{_NUMBER}_kernel\.py")


class KernelName(NamedTuple):
    """`level_{level}_problem_{number}_sample_{sample}_kernel.py`; in the order of a folder."""

    level: int
    number: int
    sample: int

    @classmethod
    def of(cls, path: Path) -> KernelName | None:
        match = _NAMED.fullmatch(path.name)
        return cls(*map(int, match.groups())) if match else None


class EvalResults:
    def __init__(self, path: Path, levels: Iterable[int]) -> None:
        """`path` is that of a single level; those of several get `_level_N` before the ending.

        Raises `UsageError` where a file can't be written, or holds what another program wrote.
        """
        levels = sorted(set(levels))
        self._paths = {
            level: path if len(levels) == 1 else path.with_stem(f"{path.stem}_level_{level}")
            for level in levels
        }
        for file in self._paths.values():
            refuse_foreign(file, _is_ours)

    def write(
        self, outcomes: Iterable[tuple[KernelName, str, Evaluation | Exception]]
    ) -> list[Path]:
        """Write over earlier files of this program; a problem's id is second. Returns the paths."""
        entries: dict[int, dict[str, list[object]]] = {level: {} for level in self._paths}
        for name, problem_id, outcome in outcomes:
            samples = entries[name.level].setdefault(str(name.number), [])
            samples.append(_entry(name.sample, problem_id, outcome))
        for level, path in self._paths.items():
            write_plain(path, json.dumps(entries[level], indent=4) + "\n")
        return list(self._paths.values())


def refuse_foreign(file: Path, is_ours: Callable[[str], bool]) -> None:
    """Raises `UsageError` where a file can't be written, or isn't this program's."""
    exists = os.path.lexists(file)
    wrong = ""
    if not all(os.access(path, os.W_OK) for path in (file.parent, *[file] * exists)):
        wrong = "can't be written"
    elif exists:
        try:
            with open_plain(file, _MOST_BYTES) as found:
                if not is_ours(found.read(_MOST_BYTES).decode(errors="replace")):
                    wrong = "holds results of another program"
        except OSError as error:
            wrong = f"can't be written over: {error.strerror}"
    if wrong:
        raise UsageError(f"{file} {wrong}; choose another place for the results")


def _entry(sample: int, problem_id: str, outcome: Evaluation | Exception) -> dict[str, object]:
    metadata: dict[str, object] = {"judge": _JUDGE, "problem": problem_id}
    entry: dict[str, object] = {
        "sample_id": sample,
        "compiled": False,
        "correctness": False,
        "metadata": metadata,
        "runtime": -1.0,
        "runtime_stats": {},
    }
    if isinstance(outcome, Exception):
        metadata |= {"status": "not_judged", "error": f"{type(outcome).__name__}: {outcome}"}
        return entry
    metadata |= {
        "status": outcome.status,
        "reason": outcome.reason,
        "message": outcome.message,
        "findings": list(outcome.findings),
        "hardware": outcome.device,
        "device": outcome.conditions.get("judged_on"),
    }
    built = outcome.status not in (Status.NO_CODE, Status.BUILD_ERROR)
    entry["compiled"] = built and outcome.reason not in _NOT_LOADED
    entry["correctness"] = outcome.status is Status.CORRECT
    if timing := outcome.timing:
        metadata |= {
            "speedup": timing.speedup,
            "speedup_low": timing.speedup_low,
            "speedup_high": timing.speedup_high,
            "verdict": timing.verdict,
            "ref_runtime": timing.baselines[BaselineName.EAGER].latency_us / 1000,
        }
        entry["runtime"] = timing.latency_us / 1000
        entry["runtime_stats"] = {
            "median": timing.latency_us / 1000,
            "low": timing.latency_low_us / 1000,
            "high": timing.latency_high_us / 1000,
            "num_trials": timing.calls,
        }
    return entry


def _is_ours(text: str) -> bool:
    try:
        samples = json.loads(text).values()
        entries = [entry for each in samples for entry in each]
        return all(samples) and all(entry["metadata"].get("judge") == _JUDGE for entry in entries)
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return False
