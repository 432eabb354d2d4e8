"""`python -m experiments.bench.audit`: is a suite of problems itself sound?

A problem is sound when the judge's accept rule refuses everything that a cheater would return for
it (`cheats.py`) and accepts what an honest implementation returns. Problem files are the user's own
and are trusted: they run in this process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import BaseModel, ConfigDict

from evaluator.command.command_line import serve

if TYPE_CHECKING:
    from experiments.bench.cheats import Attempt, Cheat, Scene
    from problems.problem import Problem

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Result = Literal["refused", "accepted", "not_applicable", "unusable"]


class Finding(BaseModel):
    """What the accept rule made of one kind of cheat on one problem."""

    model_config = ConfigDict(frozen=True)

    problem: str
    cheat: str
    """A value of `Cheat`; `load` where the problem itself can't be run."""
    result: Result
    detail: str = ""
    """The strongest attempt (accepted, or nearest to it), or why there was none."""
    attempts: int = 0
    error_ratio: float | None = None
    """Of that attempt, over the limit. None where something else decided."""

    @property
    def sound(self) -> bool:
        """Whether the result is what it should be."""
        if self.result == "unusable":
            return False
        return self.result != ("refused" if self.cheat == "honest" else "accepted")


def audit(problem: Problem, device: str = "cpu", seed: int = 0) -> Iterator[Finding]:
    """Try every cheat on one problem, with the sizes that fit the device.

    Yields one finding per kind of cheat, as it is reached; a problem that can't be run yields one
    `unusable`. `seed` chooses parameters and inputs.
    """
    import torch

    from evaluator.errors import UnusableReferenceError
    from evaluator.judge.problem.reference import Reference
    from evaluator.settings import Precision
    from experiments.bench.cheats import Cheat, Scene
    from problems.sizes import SizeClass

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    size_class = SizeClass.CPU if device == "cpu" else SizeClass.GPU
    source = problem.reference(size_class)
    try:
        scene = Scene(Reference(source, torch.device(device), Precision.FP32), seed)
    except (UnusableReferenceError, RuntimeError) as error:
        yield Finding(problem=problem.id, cheat="load", result="unusable", detail=str(error))
        return
    for cheat in Cheat:
        yield _finding(problem.id, cheat, scene)


def _finding(problem: str, cheat: Cheat, scene: Scene) -> Finding:
    from experiments.bench.cheats import NotApplicable, attempts

    reasons: list[str] = []
    tried: list[Finding] = []
    for attempt in attempts(cheat, scene):
        if isinstance(attempt, NotApplicable):
            reasons.append(attempt.reason)
        else:
            tried.append(_judged(problem, cheat, attempt, scene))
    if not tried:
        return Finding(
            problem=problem, cheat=cheat, result="not_applicable", detail="; ".join(reasons)
        )
    # The first that is not what it should be, else the one nearest to the limit.
    decisive = min(
        tried, key=lambda f: (f.sound, f.error_ratio if f.error_ratio is not None else 1e300)
    )
    return decisive.model_copy(update={"attempts": len(tried)})


def _judged(problem: str, cheat: Cheat, attempt: Attempt, scene: Scene) -> Finding:
    from evaluator.judge.correctness.comparison import compare
    from evaluator.settings import Precision

    verdict = compare(
        attempt.outputs,
        scene.expected,
        scene.exact,
        scene.inputs,
        Precision.FP32,
        accumulation=scene.accumulation,
    )
    ratio = verdict.error_ratio
    if ratio is not None and verdict.error_ratio_limit:
        ratio /= verdict.error_ratio_limit
        if ratio <= 1.0 and not verdict.ok:
            ratio = None  # refused for single rows or elements, NaN, or another output
    return Finding(
        problem=problem,
        cheat=cheat,
        result="accepted" if verdict.ok else "refused",
        detail=attempt.detail,
        error_ratio=ratio,
    )


@app.command()
def main(
    suite: Annotated[
        Path | None, typer.Argument(help="A folder in KernelBench's format; default: our own.")
    ] = None,
    problem: Annotated[
        list[str] | None, typer.Option(help="Id, alias or file; repeatable. Default: all.")
    ] = None,
    level: Annotated[int | None, typer.Option(help="Only this level.")] = None,
    filter: Annotated[
        str | None,
        typer.Option(help="Only ids or categories that this regular expression is found in."),
    ] = None,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda or cuda:N; it chooses the sizes too.")
    ] = "cpu",
    seed: Annotated[int, typer.Option(help="Chooses parameters and inputs.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line on stdout.")
    ] = False,
) -> None:
    """Show that the accept rule refuses every cheat on every problem; exit code 1 if not."""
    from evaluator.hardware.device_choice import resolve_device
    from problems.errors import UsageError
    from problems.loader import load_problem, load_suite, select

    chosen = [load_problem(ref, suite) for ref in problem or ()] or load_suite(suite)
    chosen = select(chosen, level=level, filter=filter)
    if not chosen:
        raise UsageError("no problem fits; `python -m problems.list` names all")
    device = resolve_device(device)
    sound = True
    for one in chosen:
        findings = []
        for finding in audit(one, device, seed):
            findings.append(finding)
            if as_json:
                print(finding.model_dump_json(), flush=True)
        sound &= all(finding.sound for finding in findings)
        if not as_json:
            print(f"{one.id:44} {_summary(findings)}", flush=True)
    raise typer.Exit(0 if sound else 1)


def _summary(findings: list[Finding]) -> str:
    """One line for a person: what failed, else how near the nearest cheat came."""
    wrong = [f"{f.cheat} {f.result} ({f.detail})" for f in findings if not f.sound]
    skipped = [f"{f.cheat} ({f.detail})" for f in findings if f.result == "not_applicable"]
    refused = [f for f in findings if f.result == "refused" and f.sound]
    text = f"UNSOUND: {'; '.join(wrong)}" if wrong else f"sound: {len(refused)} cheats refused"
    if measured := [f for f in refused if f.error_ratio is not None]:
        nearest = min(measured, key=lambda f: f.error_ratio or 0.0)
        text += f", nearest {nearest.cheat} at {nearest.error_ratio:.3g} times the limit"
    if skipped:
        text += f"; not applicable: {', '.join(skipped)}"
    return text


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.bench.audit"))
