"""A folder of kernels, named as KernelBench names them: found, judged, summed up."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from evaluator.errors import InfrastructureError
from evaluator.eval_results import NAME, EvalResults
from evaluator.evaluation import Evaluation, EvaluationRequest
from evaluator.executor.executor import Executor
from evaluator.kernel_name import KernelName
from evaluator.many import judged
from evaluator.tally import Tally
from evaluator.verdict_lines import verdict_lines
from problems.errors import UnknownProblemError, UsageError
from problems.loader import load_problem
from problems.problem import Problem


class NamedKernel(NamedTuple):
    """A file of the folder with the problem that its name says."""

    name: KernelName
    path: Path
    problem: Problem


def kernels_in(folder: Path, suite: Path | None) -> list[NamedKernel]:
    """The kernels by level, problem and sample. Files for problems that the suite does not have are
    reported and passed over. Raises `UsageError` where none is left."""
    named = sorted((name, path) for path in folder.iterdir() if (name := KernelName.of(path)))
    if not named:
        raise UsageError(f"{folder} holds no file named like level_1_problem_1_sample_0_kernel.py")
    found: list[NamedKernel] = []
    for (level, number), group in groupby(named, lambda file: file[0][:2]):
        files = list(group)
        try:
            problem = load_problem(f"{level}/{number}", suite)
        except UnknownProblemError as error:
            for _, path in files:
                print(f"{path.name} is passed over: {error}", file=sys.stderr)
        else:
            found += [NamedKernel(name, path, problem) for name, path in files]
    if not found:
        raise UsageError(f"{folder}: the suite has none of these problems; choose it with --suite")
    return found


def judge_folder(
    folder: Path,
    suite: Path | None,
    request: Callable[[Path, Problem], EvaluationRequest],
    executor: Executor,
    *,
    width: int,
    as_json: bool,
    results: Path | None = None,
) -> bool:
    """Judge the kernels, report each verdict in its turn, write all of them to `results`
    (`eval_results.json` in `folder`). Returns whether all are correct.

    Raises `UsageError` before anything is judged where there is nothing to judge or `results` can't
    be written, and `InfrastructureError` where every kernel fails alike (`many.judged`); what was
    found by then is written.
    """
    kernels = kernels_in(folder, suite)
    written = EvalResults(results or folder / NAME, {kernel.name.level for kernel in kernels})
    tally = Tally()
    outcomes = judged([kernel[1:] for kernel in kernels], request, executor, width=width)
    try:
        for kernel, (outcome, first) in zip(kernels, outcomes, strict=True):
            tally.add(outcome)
            written.add(kernel.name, kernel.problem.id, outcome)
            if as_json:
                print(json.dumps(_record(kernel, outcome, first)), flush=True)
            else:
                for line in _lines(kernel, outcome, first):
                    print(line, file=sys.stderr)
    finally:
        paths = written.write()
        for line in [*tally.lines(), f"results: {', '.join(map(str, paths))}"]:
            print(line, file=sys.stderr)
    return tally.correct == len(kernels)


def _record(
    kernel: NamedKernel, outcome: Evaluation | InfrastructureError, first: Path | None
) -> dict[str, object]:
    place: dict[str, object] = {"kernel": kernel.path.name, "problem": kernel.problem.id}
    if isinstance(outcome, InfrastructureError):
        return place | {"error": f"{type(outcome).__name__}: {outcome}"}
    judged_with = {"judged_with": first.name if first else ""}
    return place | judged_with | outcome.model_dump(mode="json", by_alias=True)


def _lines(
    kernel: NamedKernel, outcome: Evaluation | InfrastructureError, first: Path | None
) -> list[str]:
    place = f"{kernel.path.name} on {kernel.problem.id}"
    if isinstance(outcome, InfrastructureError):
        return [f"{place}: cannot be judged", f"  {type(outcome).__name__}: {outcome}"]
    if first is not None:
        return [f"{place}: {outcome.status}, as {first.name}, which is identical"]
    return list(verdict_lines(kernel.path, kernel.problem, outcome))
