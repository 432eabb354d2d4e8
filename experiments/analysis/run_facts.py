"""What a run is: its settings and where it was made, as a table's heading tells them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent.record.run_files import RunFiles
from evaluator.record import Record
from experiments.analysis.label import model_label, model_note, policy_label
from experiments.runs import load_runs, run_config
from problems.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

_SHA = re.compile(r"\b([0-9a-f]{12})[0-9a-f]+\b")


class RunFacts(Record):
    run: str
    path: str
    strategy: str
    feedback: str
    model: str
    model_note: str
    """Not empty where the model is no language model at work."""
    temperature: float | None
    backend: str
    device: str
    precision: str
    protocol: str
    size_class: str
    budget: int
    """Calls a problem: as configured, else the most that any problem got."""
    limits: str
    """What else could end a problem; empty: nothing."""
    turns: int
    hashes: dict[str, str]
    """Of each problem with a turn, the hash of its text."""
    unbegun: tuple[str, ...]
    """Problems that were asked for and have no turn."""
    eager_flags: str
    """The arithmetic that eager was allowed; empty: on a CPU, or recorded by an older version."""
    rungs: tuple[str, ...]
    versions: dict[str, str]
    commit: str
    """Of this program, when the run was made (`+changes`: with changes that were not committed);
    empty: not recorded."""

    @property
    def title(self) -> str:
        """`refine G+E+P, offline/tuner (rule-based ...), cpp`."""
        return f"{policy_label(self.strategy, self.feedback)}, {model_label(self.model)}"

    @property
    def setting(self) -> str:
        """`cpp on AMD EPYC, fp32, torch 2.11.0, commit 3b5b8c43185a`."""
        torch = f", torch {self.versions['torch']}" if "torch" in self.versions else ""
        commit = f", commit {self.commit}" if self.commit else ""
        return f"{self.backend} on {self.device}, {self.precision}{torch}{commit}"


@dataclass(frozen=True)
class LoadedRun:
    turns: pd.DataFrame
    facts: RunFacts


def load_run(path: Path) -> LoadedRun:
    """The one run at `path`. Raises `UsageError` where there are several, or it can't be read."""
    turns = load_runs(path)
    runs = list(dict.fromkeys(turns["run"]))
    if len(runs) > 1:
        raise UsageError(f"{path} holds {len(runs)} runs ({', '.join(runs[:4])}); name one of them")
    return LoadedRun(turns, facts_of(turns))


def load_all(paths: Sequence[Path]) -> list[LoadedRun]:
    turns = load_runs(paths)
    return [LoadedRun(part, facts_of(part)) for _, part in turns.groupby("path", sort=False)]


def facts_of(turns: pd.DataFrame) -> RunFacts:
    """What the one run in `turns` is. Raises `UsageError` where its turns are not of one kind."""
    run, folder = str(turns["run"].iloc[0]), Path(turns["path"].iloc[0])

    def one(column: str) -> str:
        values = list(dict.fromkeys(turns[column]))
        if len(values) > 1:
            raise UsageError(
                f"{run} mixes {column.replace('_', ' ')} {' and '.join(map(str, values[:3]))};"
                " its turns can't be put into one figure"
            )
        return str(values[0])

    first = turns.iloc[0]
    hashes = dict(zip(turns["problem"], turns["problem_hash"], strict=True))
    environment = RunFiles(folder).environment()
    packages = environment.get("packages")
    budget = first["budget"]
    return RunFacts(
        run=run,
        path=str(folder.resolve()),
        strategy=one("strategy"),
        feedback=one("feedback"),
        model=one("model"),
        model_note=model_note(one("model")),
        temperature=None if math.isnan(first["temperature"]) else float(first["temperature"]),
        backend=one("backend"),
        device=one("device"),
        precision=one("precision"),
        protocol=one("protocol"),
        size_class=one("size_class"),
        budget=int(turns["call"].max()) + 1 if math.isnan(budget) else int(budget),
        limits=str(first["limits"]),
        turns=len(turns),
        eager_flags=", ".join(sorted(set(turns["eager_flags"]) - {""})),
        hashes=hashes,
        unbegun=tuple(n for n in run_config(folder).get("problems") or () if n not in hashes),
        rungs=tuple(sorted(set(turns["rung"]) - {""})),
        versions=packages if isinstance(packages, dict) else {},
        commit=_SHA.sub(r"\1", str(environment.get("commit") or "")),
    )
