"""`python -m evaluator.check`: the evaluator's face. One kernel, one verdict; or many."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from problems.errors import UsageError
from problems.source_file import read_source

if TYPE_CHECKING:
    from evaluator.evaluation import Backend, Evaluation, EvaluationRequest, Mismatch, Settings
    from evaluator.executor.executor import Executor
    from evaluator.many import Kernel
    from problems.problem import Problem

_KERNELBENCH_NAME = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py$")
_VERDICTS = {
    "faster": "faster than",
    "slower": "slower than",
    "same": "as fast as",
    "unclear": "not clearly faster or slower than",
}


def backend_of(source: str, device: str) -> Backend:
    """The backend of a kernel file, told from its text: what it compiles with."""
    from evaluator.evaluation import Backend

    if re.search(r"@triton\.(jit|autotune)", source):
        return Backend.TRITON
    if "cuda_sources" in source or re.search(r"__global__", source):
        return Backend.CUDA
    return Backend.CPP if device == "cpu" else Backend.CUDA


def request_for(source: str, problem: Problem, settings: Settings) -> EvaluationRequest:
    """A request to judge one kernel's source on one problem."""
    from evaluator.evaluation import Candidate, EvaluationRequest
    from problems.problem import SizeClass

    size = SizeClass.CPU if settings.device == "cpu" else SizeClass.GPU
    return EvaluationRequest(
        problem_id=problem.id,
        reference=problem.reference(size),
        hidden_references=problem.hidden_references(size),
        candidate=Candidate(source=source, backend=backend_of(source, settings.device)),
        settings=settings,
    )


def _kernels(path: Path, problem: str | None, suite: Path | None) -> list[Kernel]:
    from problems.loader import load_problem

    if not path.exists():
        raise UsageError(f"{path} does not exist: give a kernel file, or a folder of them")
    if path.is_file():
        if problem is None:
            raise UsageError("say which problem the kernel is for: --problem ID or --problem FILE")
        return [(path, load_problem(problem, suite))]
    named = []
    for file in path.iterdir():
        if match := _KERNELBENCH_NAME.match(file.name):
            level, number, sample = map(int, match.groups())
            named.append((level, number, sample, file))
    found = [
        (file, load_problem(f"{level}/{number}", suite)) for level, number, _, file in sorted(named)
    ]
    if not found:
        raise UsageError(f"{path} holds no file named like level_1_problem_1_sample_0_kernel.py")
    return found


def _print(path: Path, problem: Problem, evaluation: Evaluation) -> None:
    from evaluator.deep_audit.summary import audit_lines

    timing, correctness = evaluation.timing, evaluation.correctness
    print(f"{path.name} on {problem.id}: {evaluation.status}", file=sys.stderr)
    if evaluation.reason:
        print(f"  {evaluation.reason}: {evaluation.message}", file=sys.stderr)
    if evaluation.detail:
        print("  " + evaluation.detail.rstrip().replace("\n", "\n  "), file=sys.stderr)
    if evaluation.build and not evaluation.build.ok:
        print("  " + evaluation.build.log[:4000].rstrip().replace("\n", "\n  "), file=sys.stderr)
    if correctness and correctness.mismatch and evaluation.reason != "wrong_layout":
        print(f"  {_facts(correctness.mismatch)}", file=sys.stderr)
    if correctness and correctness.error_ratio is not None:
        print(
            f"  {correctness.calls_judged} of {correctness.calls_made} calls judged; error "
            f"{correctness.error_ratio:.2f}x PyTorch's own (limit "
            f"{correctness.error_ratio_limit:g}x)",
            file=sys.stderr,
        )
    if timing:
        print(
            f"  {timing.latency_us:.1f} us [{timing.latency_low_us:.1f}, "
            f"{timing.latency_high_us:.1f}]",
            file=sys.stderr,
        )
        for name, baseline in timing.baselines.items():
            print(
                f"  {_VERDICTS[baseline.verdict]} {name} ({baseline.latency_us:.1f} us): "
                f"{baseline.speedup:.3f}x [{baseline.speedup_low:.3f}, "
                f"{baseline.speedup_high:.3f}], {baseline.pairs} pairs",
                file=sys.stderr,
            )
        if timing.sol_fraction is not None:
            share = 100 * timing.sol_fraction
            figure = f"{share:.0f}" if share >= 1 else f"{share:.1g}"
            print(f"  {figure} % of the speed of light", file=sys.stderr)
    for line in audit_lines(evaluation):
        print(f"  {line}", file=sys.stderr)
    for note in evaluation.notes:
        print(f"  note: {note}", file=sys.stderr)
    print(f"  isolation: {', '.join(evaluation.isolation)}", file=sys.stderr)


def _facts(mismatch: Mismatch) -> str:
    if mismatch.kind == "values":
        looks = f"; looks like: {', '.join(mismatch.patterns)}" if mismatch.patterns else ""
        if changed := mismatch.details.get("counterfactual"):
            looks += f"; in the reference, {changed}"
        first = mismatch.examples[0] if mismatch.examples else None
        shown = (
            f"; at {first.index} {first.actual:g} instead of {first.expected:g}" if first else ""
        )
        return (
            f"{mismatch.wrong} of {mismatch.total} values are wrong, by up to "
            f"{mismatch.max_abs_error:.3g}{shown}{looks}"
        )
    return (
        f"{mismatch.kind}: {mismatch.actual_shape} {mismatch.actual_dtype} instead of "
        f"{mismatch.expected_shape} {mismatch.expected_dtype}"
    )


def judge_all(
    kernels: list[Kernel], settings: Settings, executor: Executor, *, width: int, as_json: bool
) -> bool:
    """Judge the kernels, telling each verdict in its turn; whether all were correct."""
    from evaluator.evaluation import Status
    from evaluator.many import judged

    def request(path: Path, problem: Problem) -> EvaluationRequest:
        return request_for(read_source(path), problem, settings)

    correct = 0
    verdicts = judged(kernels, request, executor, width=width)
    for (path, problem), (evaluation, first) in zip(kernels, verdicts, strict=True):
        correct += evaluation.status is Status.CORRECT
        if as_json:
            record = evaluation.model_dump(mode="json", by_alias=True)
            if len(kernels) > 1:
                place = {"kernel": path.name, "problem": problem.id}
                record = place | {"judged_with": first.name if first else ""} | record
            print(json.dumps(record), flush=True)
        elif first is not None:
            told = f"{evaluation.status}, as {first.name}, which is identical"
            print(f"{path.name} on {problem.id}: {told}", file=sys.stderr)
        else:
            _print(path, problem, evaluation)
    if len(kernels) > 1:
        print(f"{correct} of {len(kernels)} kernels are correct", file=sys.stderr)
    return correct == len(kernels)


def check(
    kernel: Annotated[
        Path, typer.Argument(help="A file with ModelNew, or a folder named as KernelBench does.")
    ],
    problem: Annotated[str | None, typer.Option(help="Id or file of the problem.")] = None,
    suite: Annotated[
        Path | None, typer.Option(help="A folder of problems in KernelBench's format.")
    ] = None,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda, cuda:N, or for a folder cuda:N,M or all.")
    ] = "auto",
    precision: Annotated[str, typer.Option(help="fp32, tf32, fp16 or bf16.")] = "fp32",
    protocol: Annotated[str, typer.Option(help="refinery or kernelbench.")] = "refinery",
    baseline: Annotated[
        list[str] | None, typer.Option(help="compile, beside eager. Repeatable.")
    ] = None,
    timing_seconds: Annotated[float, typer.Option(help="Longest time spent on timing.")] = 10.0,
    audit: Annotated[
        bool | None,
        typer.Option(
            "--audit/--no-audit",
            help="Audit a correct kernel in depth; or not, and look into no crash either. [where "
            "its time is hard to believe, and a crash]",
        ),
    ] = None,
    require: Annotated[
        str, typer.Option(help="any, or custom: refuse what libraries compute.")
    ] = "any",
    isolation: Annotated[
        str,
        typer.Option(
            "--require-isolation", help="strict: judge only if every wall stands. Or: available."
        ),
    ] = "available",
    json_: Annotated[bool, typer.Option("--json", help="One evaluation on stdout.")] = False,
) -> None:
    """Judge a kernel. Exit code 0: correct; 1: refused; 2: wrong usage."""
    from pydantic import ValidationError

    from evaluator.device_choice import resolve_devices
    from evaluator.errors import InfrastructureError
    from evaluator.evaluation import BaselineName, Settings, audit_setting
    from evaluator.executor.local import LocalExecutor

    try:
        names = dict.fromkeys(["eager", *(baseline or [])])
        devices = resolve_devices(device)
        try:
            settings = Settings.model_validate(
                {
                    "device": devices[0],
                    "precision": precision,
                    "protocol": protocol,
                    "baselines": tuple(BaselineName(name) for name in names),
                    "timing_seconds": timing_seconds,
                    "audit": audit_setting(audit),
                    "require": require,
                    "isolation": isolation,
                }
            )
        except (ValidationError, ValueError) as error:
            raise UsageError(str(error).replace("\n", " ")) from None
        if settings.isolation == "strict":
            from evaluator.walls.survey import insist

            insist()
        kernels = _kernels(kernel, problem, suite)
        with LocalExecutor(*devices) as executor:
            good = judge_all(kernels, settings, executor, width=executor.width, as_json=json_)
    except (UsageError, InfrastructureError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    raise typer.Exit(0 if good else 1)


if __name__ == "__main__":
    typer.run(check)
