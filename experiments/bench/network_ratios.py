"""`python -m experiments.bench.network_ratios`: known ratios on the tasks of a suite.

`spin`: both sides run the task's own module and then wait on the device, the reference for a tenth
of the module's time, a candidate for as long as makes the ratio right. `repeats`: the reference
runs the module 20 times, a candidate 18, 19, 21 or 22 times. Results name tasks by their ids and
hold nothing of their text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from agent.record.durable import write_whole
from evaluator.command.command_line import serve
from evaluator.evaluation import Evaluation, EvaluationRequest, Status
from evaluator.executor.executor import Executor
from experiments.bench.known_ratios import Run
from experiments.bench.suites.attempt import attempt
from experiments.bench.suites.result_lines import Part, ResultLines
from experiments.bench.suites.suite_run import (
    Device,
    LimitS,
    Only,
    Out,
    Suite,
    SuiteRun,
    TimingSeconds,
    suite_run,
)
from problems.problem import Problem

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Way = Literal["spin", "repeats"]
RATIOS = (1.10, 1.05, 1 / 1.05, 1 / 1.10)
_REPEATS = {1.10: 18, 1.05: 19, 1 / 1.05: 21, 1 / 1.10: 22}
_OF_REFERENCE = 20
_LONGEST_REPEATED_US = 2000.0
"""A module that takes longer is not run 20 times in a call."""
_SPIN_SHARE = 0.1
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
        for _ in range({repeats}):
            out = self.task(*args)
        {wait}
        return out
"""


class NetworkRun(Run):
    """One evaluation of a task's own module, made slower or faster by a known ratio."""

    problem: str
    way: Way
    nominal: float
    """One of `RATIOS`; `true_ratio` is what the spin or the repeats come to."""
    wall_s: float
    notes: tuple[str, ...] = ()
    """Of the evaluation, such as why streams could not be held; rows of before have none."""


@app.command()
def network_ratios(
    suite: Suite,
    device: Device = "auto",
    only: Only = None,
    each: Annotated[int, typer.Option(help="Evaluations of each ratio, for each task.")] = 2,
    timing_seconds: TimingSeconds = 1.0,
    limit_s: LimitS = None,
    out: Out = None,
) -> None:
    """Judge candidates whose speedup is known. Exit code 0: all tasks were reached; 1: go on."""
    run = suite_run(suite, device, only, timing_seconds, limit_s, None)
    lines = ResultLines(out, NetworkRun)
    left = [p for p in run.problems if p.id not in {row.problem for row in lines.rows}]
    reached = measure(run, left, each, lines)
    table = markdown(lines.parts, lines.rows)
    if out is not None:
        write_whole(out.with_suffix(".md"), table)
    typer.echo(table)
    raise typer.Exit(0 if reached == len(left) else 1)


def measure(
    run: SuiteRun, problems: list[Problem], each: int, lines: ResultLines[NetworkRun]
) -> int:
    """Judge each task's candidates while there is time; how many tasks were reached."""
    reached = 0
    if not problems:
        return 0
    lines.begin(run.part())
    with run.executor() as executor:
        for problem in run.until_time_is_up(problems):
            reached += 1
            for row in _rows(run, executor, problem, each):
                lines.add(row)
                typer.echo(
                    f"{row.problem} {row.way} {row.true_ratio:.4f}: {row.speedup:.4f} "
                    f"[{row.speedup_low:.4f}, {row.speedup_high:.4f}] {row.verdict}",
                    err=True,
                )
    return reached


def _rows(run: SuiteRun, executor: Executor, problem: Problem, each: int) -> list[NetworkRun]:
    """Of one task; none where it cannot be judged."""
    plain = _judged(run, executor, problem, (1, 0.0), (1, 0.0))
    if plain is None or plain[0].timing is None:
        return []
    task_us = plain[0].timing.latency_us
    spin_us = _SPIN_SHARE * task_us
    clock_mhz = float(plain[0].conditions.get("timed_sm_clock_high_mhz") or 1.0)
    cases: list[tuple[Way, float, tuple[int, float], tuple[int, float], float]] = []
    for ratio in RATIOS:
        wait_us = max(0.0, (task_us + spin_us) / ratio - task_us)
        truth = (task_us + spin_us) / (task_us + wait_us)
        cases.append(("spin", ratio, (1, spin_us), (1, wait_us), truth))
    if task_us <= _LONGEST_REPEATED_US:
        for ratio, count in _REPEATS.items():
            truth = _OF_REFERENCE / count
            cases.append(("repeats", ratio, (_OF_REFERENCE, 0.0), (count, 0.0), truth))
    rows = []
    for way, nominal, reference, candidate, truth in cases * each:
        judged = _judged(run, executor, problem, reference, candidate, clock_mhz)
        if judged is None or judged[0].timing is None:
            continue
        evaluation, wall_s = judged
        timing = evaluation.timing
        assert timing is not None
        rows.append(
            NetworkRun(
                device=evaluation.device,
                true_ratio=truth,
                verdict=timing.verdict,
                speedup=timing.speedup,
                speedup_low=timing.speedup_low,
                speedup_high=timing.speedup_high,
                pairs=next(iter(timing.baselines.values())).pairs,
                disturbed_blocks=timing.disturbed_blocks,
                stopped=timing.stopped,
                problem=problem.id,
                way=way,
                nominal=nominal,
                wall_s=wall_s,
                notes=evaluation.notes,
            )
        )
    return rows


def _judged(
    run: SuiteRun,
    executor: Executor,
    problem: Problem,
    reference: tuple[int, float],
    candidate: tuple[int, float],
    clock_mhz: float = 1.0,
) -> tuple[Evaluation, float] | None:
    """The evaluation and its seconds; None, with a line on stderr, where there is none.

    `reference`, `candidate`: how often each runs the module, and how many microseconds it waits.
    """
    task = run.reference(problem)
    on_gpu = run.settings.device.startswith("cuda")
    request = EvaluationRequest(
        problem_id=problem.id,
        reference=side(task, "Model", *reference, clock_mhz, on_gpu=on_gpu),
        candidate=run.request(
            side(task, "ModelNew", *candidate, clock_mhz, on_gpu=on_gpu), problem
        ).candidate,
        settings=run.settings,
    )
    made = attempt(executor, request)
    evaluation = made.evaluation
    if evaluation is None or evaluation.status is not Status.CORRECT:
        said = made.failure if evaluation is None else f"{evaluation.reason} {evaluation.message}"
        typer.echo(f"{problem.id}: {said[:200]}", err=True)
        return None
    return evaluation, made.wall_s


def side(
    task: str, name: str, repeats: int, wait_us: float, clock_mhz: float, *, on_gpu: bool
) -> str:
    """A source whose class `name` runs the task's module so often and then waits."""
    cycles = int(wait_us * clock_mhz)
    return _SIDE.format(
        task=re.sub(r"\bModel\b", "TaskModel", task),
        name=name,
        repeats=repeats,
        wait=f"torch.cuda._sleep({cycles})" if on_gpu else f"_wait({wait_us!r})",
    )


def markdown(parts: Sequence[Part], rows: Sequence[NetworkRun]) -> str:
    """How often the verdict was right and the interval held the truth, by ratio and way."""
    lines = [
        "# Known ratios on networks",
        "",
        *dict.fromkeys(map(str, parts)),
        "",
        "| ratio | way | tasks | runs | right | unclear | wrong | its interval holds the truth |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for way in ("spin", "repeats"):
        for size in (1.05, 1.10):
            mine = [r for r in rows if r.way == way and max(r.nominal, 1 / r.nominal) == size]
            if mine:
                right, wrong = (sum(r.right is side for r in mine) for side in (True, False))
                held = 100 * sum(r.covered for r in mine) / len(mine)
                tasks = len({r.problem for r in mine})
                lines.append(
                    f"| {size:.2f} or its inverse | {way} | {tasks} | {len(mine)} | {right} "
                    f"| {len(mine) - right - wrong} | {wrong} | {held:.0f} % |"
                )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.bench.network_ratios"))
