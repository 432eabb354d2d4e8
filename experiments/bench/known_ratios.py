"""`python -m experiments.bench.known_ratios`: how often the verdict on speed is right.

Both sides run a task's own module and then wait on the device: the reference for a tenth of the
module's time, the candidate for as long as makes the ratio right. For a ratio of 1 neither waits:
the code is identical. Results name tasks by their ids and hold nothing of their text.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Annotated

import typer

from evaluator.command.command_line import serve
from evaluator.command.option import takes_options
from evaluator.evaluation import Evaluation, EvaluationRequest, Status, Timing, Verdict
from evaluator.executor.executor import Executor
from evaluator.record import Record
from experiments.bench.suites.attempt import attempt
from experiments.bench.suites.result_lines import Part, ResultLines
from experiments.bench.suites.suite_run import SuiteOptions, SuiteRun, suite_run
from problems.problem import Problem

RATIOS = (1.10, 1.05, 1.0, 1 / 1.05, 1 / 1.10)
_WAIT_SHARE = 0.1
_SIDE = """{task}

import time as _time


def _wait(us):
    end = _time.perf_counter() + us / 1e6
    while _time.perf_counter() < end:
        pass


class {name}(torch.nn.Module):
    def __init__(self, *args):
        super().__init__()
        self.task = TaskModel(*args)

    def forward(self, *args):
        out = self.task(*args)
        {wait}
        return out
"""


class RatioRow(Record):
    """One evaluation of a task's own module, made slower or faster by a known ratio."""

    problem: str
    nominal: float
    """As it was asked for."""
    true_ratio: float
    """What the waits come to: the reference's work over the candidate's."""
    verdict: Verdict
    speedup: float
    speedup_low: float
    speedup_high: float
    pairs: int
    wall_s: float
    notes: tuple[str, ...] = ()
    """Of the evaluation, such as why streams could not be held."""

    @property
    def right(self) -> bool | None:
        """Whether the verdict is true; None where it abstained."""
        if self.verdict is Verdict.UNCLEAR:
            return None
        if self.nominal == 1.0:
            return self.verdict is Verdict.SAME
        return self.verdict is (Verdict.FASTER if self.nominal > 1.0 else Verdict.SLOWER)

    @property
    def covered(self) -> bool:
        """Whether the 95 % interval holds the true ratio."""
        return self.speedup_low <= self.true_ratio <= self.speedup_high


@takes_options(SuiteOptions)
def command(
    given: dict[str, object],
    each: Annotated[int, typer.Option(help="Evaluations of each ratio, for each task.")] = 1,
    ratio: Annotated[
        list[float] | None,
        typer.Option(min=0.1, help="Repeatable; 1 is identical code. [1, 1.05, 1.1, inverses]"),
    ] = None,
    timing_seconds: Annotated[float, typer.Option(help="Longest time for timing, each.")] = 1.0,
) -> None:
    """Judge candidates whose speedup is known. Exit code 0: all tasks were reached; 1: go on."""
    run, out = suite_run(given | {"timing_seconds": timing_seconds})
    lines = ResultLines(out, RatioRow)
    left = run.waiting({row.problem for row in lines.rows})
    reached = 0
    for executor, problem in run.until_time_is_up(left, lines):
        reached += 1
        for row in _rows(run, executor, problem, (ratio or RATIOS) * each):
            lines.add(row)
            typer.echo(
                f"{row.problem} {row.true_ratio:.4f}: {row.speedup:.4f} "
                f"[{row.speedup_low:.4f}, {row.speedup_high:.4f}] {row.verdict}",
                err=True,
            )
    lines.sum_up(markdown(lines.parts, lines.rows))
    raise typer.Exit(0 if reached == len(left) else 1)


def _rows(
    run: SuiteRun, executor: Executor, problem: Problem, ratios: Sequence[float]
) -> Iterator[RatioRow]:
    """Of one task; none where it cannot be judged."""
    plain = _judged(run, executor, problem, 0.0, 0.0, 1.0)
    if plain is None:
        return
    unused = [plain]  # identical code, too
    task_us = plain[1].latency_us
    clock_mhz = float(plain[0].conditions.get("timed_sm_clock_high_mhz") or 1.0)
    for nominal in ratios:
        wait_us = 0.0 if nominal == 1.0 else _WAIT_SHARE * task_us
        mine_us = max(0.0, (task_us + wait_us) / nominal - task_us)
        found = (
            unused.pop()
            if nominal == 1.0 and unused
            else _judged(run, executor, problem, wait_us, mine_us, clock_mhz)
        )
        if found is None:
            continue
        evaluation, timing, wall_s = found
        yield RatioRow(
            problem=problem.id,
            nominal=nominal,
            true_ratio=(task_us + wait_us) / (task_us + mine_us),
            verdict=timing.verdict,
            speedup=timing.speedup,
            speedup_low=timing.speedup_low,
            speedup_high=timing.speedup_high,
            pairs=next(iter(timing.baselines.values())).pairs,
            wall_s=wall_s,
            notes=evaluation.notes,
        )


def _judged(
    run: SuiteRun,
    executor: Executor,
    problem: Problem,
    reference_us: float,
    candidate_us: float,
    clock_mhz: float,
) -> tuple[Evaluation, Timing, float] | None:
    """The evaluation and its seconds; None, with a line on stderr, where it was not timed.

    `reference_us`, `candidate_us`: how long each waits.
    """
    on_gpu = run.settings.device.startswith("cuda")
    task = run.reference(problem)
    source = side(task, "ModelNew", candidate_us, clock_mhz, on_gpu=on_gpu)
    request = EvaluationRequest(
        problem_id=problem.id,
        reference=side(task, "Model", reference_us, clock_mhz, on_gpu=on_gpu),
        candidate=run.request(source, problem).candidate,
        settings=run.settings,
    )
    made = attempt(executor, request)
    evaluation = made.evaluation
    if evaluation is None or evaluation.status is not Status.CORRECT or evaluation.timing is None:
        said = made.failure if evaluation is None else f"{evaluation.reason} {evaluation.message}"
        typer.echo(f"{problem.id}: {said[:200]}", err=True)
        return None
    return evaluation, evaluation.timing, made.wall_s


def side(task: str, name: str, wait_us: float, clock_mhz: float, *, on_gpu: bool) -> str:
    """A source whose class `name` runs the task's module and then waits."""
    cycles = int(wait_us * clock_mhz)
    return _SIDE.format(
        task=re.sub(r"\bModel\b", "TaskModel", task),
        name=name,
        wait=f"torch.cuda._sleep({cycles})" if on_gpu else f"_wait({wait_us!r})",
    )


def markdown(parts: Sequence[Part], rows: Sequence[RatioRow]) -> str:
    """How often the verdict was right and the interval held the truth, by ratio."""
    lines = [
        "# Known ratios",
        "",
        *dict.fromkeys(map(str, parts)),
        "",
        "| ratio | tasks | runs | faster | same | slower | unclear | wrong "
        "| wrong, at most (95 %) | measured, median | its interval holds the truth |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for ratio in sorted({row.nominal for row in rows}):
        mine = [row for row in rows if row.nominal == ratio]
        count: Counter[str] = Counter(row.verdict for row in mine)
        wrong = sum(row.right is False for row in mine)
        lines.append(
            f"| {ratio:.3f} | {len({row.problem for row in mine})} | {len(mine)} "
            f"| {count['faster']} | {count['same']} | {count['slower']} | {count['unclear']} "
            f"| {wrong} | {100 * at_most(wrong, len(mine)):.1f} % "
            f"| {median(row.speedup for row in mine):.4f} "
            f"| {100 * sum(row.covered for row in mine) / len(mine):.0f} % |"
        )
    return "\n".join(lines) + "\n"


def at_most(wrong: int, runs: int) -> float:
    """Upper end of the one-sided 95 % interval of a share (Clopper and Pearson, Biometrika 1934).

    The share p at which seeing `wrong` or fewer of `runs` has a chance of 5 %.
    """
    low, high = wrong / runs, 1.0
    if wrong == runs:
        return 1.0
    for _ in range(60):
        p = (low + high) / 2
        chance = sum(math.comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(wrong + 1))
        low, high = (p, high) if chance > 0.05 else (low, p)
    return high


if __name__ == "__main__":
    sys.exit(serve(command, "python -m experiments.bench.known_ratios"))
