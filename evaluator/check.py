"""`python -m evaluator.check`: judges one kernel, or a folder of them."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evaluator.command.command_line import serve
from evaluator.command.option import takes_options, validated
from evaluator.errors import InfrastructureError
from evaluator.settings import JudgeOptions, Settings
from problems.errors import UndecodableError, UsageError
from problems.kernelbench_x import SUITE_HELP
from problems.source_file import read_source

if TYPE_CHECKING:
    from evaluator.evaluation import Backend, Evaluation, EvaluationRequest
    from problems.problem import Problem


def backend_of(source: str, device: str) -> Backend:
    from evaluator.evaluation import Backend

    if re.search(r"@triton\.(jit|autotune)", source):
        return Backend.TRITON
    if "cuda_sources" in source or re.search(r"__global__", source):
        return Backend.CUDA
    return Backend.CPP if device == "cpu" else Backend.CUDA


def request_for(source: str, problem: Problem, settings: Settings) -> EvaluationRequest:
    from evaluator.evaluation import Candidate, EvaluationRequest

    candidate = Candidate(source=source, backend=backend_of(source, settings.device))
    return EvaluationRequest.of(problem, settings, candidate=candidate)


def settings_for(given: Mapping[str, object], devices: Sequence[str]) -> Settings:
    """What a command's options come to on these devices. Raises `UsageError` for options that
    can't be, and for walls that are insisted on and missing."""
    from evaluator.baseline import baselines_on

    settings = validated(Settings, {**given, "device": devices[0]})
    baselines = baselines_on(devices[0], settings.baselines)
    if settings.isolation == "strict":
        from evaluator.walls.survey import insist

        insist()
    return settings.model_copy(update={"baselines": baselines})


def _source(path: Path, *, follows: bool = True) -> str:
    try:
        return read_source(path, follows=follows)
    except UndecodableError as error:
        # An import of the file would raise this: the kernel gets its verdict.
        return f"raise SyntaxError({str(error)!r})  # whatever ModelNew is\n"
    except UsageError as error:
        if follows:
            raise
        raise InfrastructureError(str(error)) from None  # it was a plain file when it was found


def check(
    kernel: Path | str,
    problem: Path | str,
    *,
    device: str = "auto",
    suite: Path | None = None,
    **options: object,
) -> Evaluation:
    """Judge the kernel in a file; `problem` is an id or a file. `options` are those of the command
    with underscores. Raises `UsageError` for a mistake in them."""
    from evaluator.executor.local import LocalExecutor
    from evaluator.hardware.device_choice import resolve_device
    from problems.loader import load_problem

    settings = settings_for(options, [resolve_device(device)])
    request = request_for(_source(Path(kernel)), load_problem(str(problem), suite), settings)
    with LocalExecutor(settings.device) as executor:
        return executor.evaluate(request)


@takes_options(JudgeOptions)
def command(
    given: dict[str, object],
    kernel: Annotated[
        Path, typer.Argument(help="A file with ModelNew, or a folder named as KernelBench does.")
    ],
    problem: Annotated[str | None, typer.Option(help="Id or file of the problem.")] = None,
    suite: Annotated[
        Path | None,
        typer.Option(help=f"{SUITE_HELP} [our own]"),
    ] = None,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda, cuda:N, or for a folder cuda:N,M or all.")
    ] = "auto",
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            help="refinery, kernelbench, verified or kernelbench-x. With --claims refinery and "
            "kernelbench. Repeatable. [refinery]"
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="Of a folder: where the results go, in KernelBench's format. "
            "[eval_results.json in the folder]"
        ),
    ] = None,
    claims: Annotated[
        Path | None,
        typer.Option(
            help="Of a folder: claimed speedups to hold against the measured ones, in a CSV file "
            "with columns level, task, claimed."
        ),
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="One evaluation on stdout; of a folder one a line.")
    ] = False,
) -> None:
    """Judge a kernel, or a folder of them.

    Exit code 0: correct, all of them; 1: refused, or some cannot be judged; 2: wrong usage, or this
    machine can judge nothing.
    """
    from evaluator.batch.claim import read_claims
    from evaluator.batch.eval_results import NAME
    from evaluator.batch.kernel_folder import FolderReport, judge_folder, kernels_in
    from evaluator.batch.verdict_lines import verdict_lines
    from evaluator.evaluation import Status
    from evaluator.executor.local import LocalExecutor
    from evaluator.hardware.device_choice import resolve_devices
    from problems.loader import load_problem

    protocols = list(dict.fromkeys(protocol or ["refinery"]))
    if len(protocols) > 1 and (claims is None or protocols[1:] != ["kernelbench"]):
        raise UsageError(
            "give one --protocol; with --claims, kernelbench may be given as a second one"
        )
    devices = resolve_devices(device)
    settings = settings_for({**given, "protocol": protocols[0]}, devices)
    if not kernel.exists():
        raise UsageError(f"{kernel} does not exist: give a kernel file, or a folder of them")
    is_watched, began = sys.stderr.isatty() and not kernel.is_dir(), time.monotonic()

    def stage(what: str) -> None:
        if is_watched:
            print(f"{time.monotonic() - began:5.1f} s  {what}", file=sys.stderr)

    with LocalExecutor(*devices, stage=stage) as executor:
        if kernel.is_dir():
            good = judge_folder(
                kernels_in(kernel, suite),
                lambda path, asked, under: request_for(_source(path, follows=False), asked, under),
                executor,
                FolderReport(
                    results or kernel / NAME,
                    json_,
                    None if claims is None else read_claims(claims),
                ),
                settings,
                settings.model_copy(update={"protocol": "kernelbench"})
                if len(protocols) > 1
                else None,
                width=executor.width,
            )
        elif problem is None:
            raise UsageError("name the kernel's problem: --problem ID or --problem FILE")
        elif results is not None or claims is not None:
            raise UsageError(
                "--results and --claims are for a folder of kernels; --json prints one verdict"
            )
        else:
            asked = load_problem(problem, suite)
            request = request_for(_source(kernel), asked, settings)
            evaluation = executor.evaluate(request)
            good = evaluation.status is Status.CORRECT
            if json_:
                print(json.dumps(evaluation.as_json()))
            else:
                print(*verdict_lines(kernel, asked, evaluation), sep="\n", file=sys.stderr)
    raise typer.Exit(0 if good else 1)


if __name__ == "__main__":
    sys.exit(serve(command, "python -m evaluator.check"))
