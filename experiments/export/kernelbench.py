"""`kernelbench`: a run as KernelBench's `eval_results.json`, for KernelBench's own analysis.

The file's format is that of `evaluator.batch.eval_results`, which a folder of kernels gets too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from agent.record.durable import disk_errors_told
from evaluator.batch.eval_results import NAME, EvalResults, KernelName
from experiments.export.recorded_run import outcome_of, recorded_runs
from problems.errors import UsageError
from problems.loader import OUR_SUITE

_ID = re.compile(r"level(\d+)_(\d+)(?!\d)")


def write_kernelbench(runs: Sequence[Path], output: Path) -> tuple[list[Path], list[str]]:
    """Write `output/RUN/eval_results.json` (a file a level where there are several).

    One entry a sample: its best kernel, or its last turn where none is correct. Returns the files
    and what a reader must know. Raises `UsageError` where no problem has a level and a number.
    """
    files, notes = [], []
    for run in recorded_runs(runs):
        entries = []
        for (problem, sample), turns in run.samples.items():
            if place := _ID.match(problem):
                name = KernelName(int(place[1]), int(place[2]), sample)
                entries.append((name, problem, outcome_of(turns)))
        if not entries:
            raise UsageError(
                f"{run.name} has no problem with a level and a number, which KernelBench's format"
                " needs; export it as parquet"
            )
        left_out = sorted({problem for problem, _ in run.samples if not _ID.match(problem)})
        if left_out:
            notes.append(f"{run.name}: left out, for want of a number: {', '.join(left_out)}")
        if any(turn.record.suite == OUR_SUITE for _, _, turn in entries):
            notes.append(f"{run.name}: numbers are those of our own suite, not of KernelBench's")
        folder = output / run.name
        with disk_errors_told(folder):
            folder.mkdir(parents=True, exist_ok=True)
        results = EvalResults(folder / NAME, [name.level for name, _, _ in entries])
        files += results.write((name, problem, turn.evaluation) for name, problem, turn in entries)
    return files, notes
