"""The main job from Python: `optimize(problem, inputs=..., **options) -> Result`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.record.result import ProblemResult
from agent.record.turn import TurnRecord


@dataclass(frozen=True)
class Result:
    best_source: str | None
    """Python source that defines `ModelNew`; None where no kernel is correct."""
    best_path: Path | None
    speedup: float | None
    """Over PyTorch eager, measured again once the search had ended; None where there is no correct
    kernel, or it could not be timed."""
    speedup_interval: tuple[float, float] | None
    """That of `Timing`."""
    turns: tuple[TurnRecord, ...]
    """Every turn, in the order of the calls."""
    run: Path
    details: ProblemResult
    """What was spent, why it stopped, and the last kernel."""


def optimize(
    problem: Path | str | object,
    inputs: Any = None,
    *,
    module: str | None = None,
    redo: bool = False,
    display: str = "none",
    **options: Any,
) -> Result:
    """Find a fast kernel for one problem; goes on where an equal call was interrupted.

    `problem` is an id (`level1_7_rms_norm`), the path of a file in KernelBench's format, or an
    instance of an `nn.Module` class. An instance is run with `inputs`; `module` names the submodule
    that is to be faster (`agent/written_problem.py` says more).

    `options` are those of `kernel-refinery run` with underscores (`model`, `budget`, `device`,
    `feedback`, `model_args={...}`, `start_from`, ...). Raises `UsageError` for a mistake in them,
    and `InfrastructureError` where the machine or the model's provider fails.
    """
    from agent.config.options import check_options
    from agent.job import run_job
    from agent.record.result import Stop
    from agent.record.run_files import RunFiles
    from agent.resolution import resolve
    from agent.view.display import view_mode
    from agent.written_problem import from_module, resolve_written
    from evaluator.errors import InfrastructureError
    from problems.errors import UsageError

    if isinstance(problem, str | Path):
        if module is not None:
            raise UsageError("module= names a part of a torch.nn.Module, which comes first")
        resolution = resolve(check_options({**options, "problems": [str(problem)]}))
    else:
        written = from_module(problem, inputs, module or "")
        resolution = resolve_written(written, check_options(options))
    result = run_job(resolution, view_mode(display), redo=redo)
    (details,) = result.problems
    if details.stop is Stop.ERROR:
        raise InfrastructureError(details.error)
    files = RunFiles(result.run)
    best = details.best
    timing = details.verdict.timing if details.verdict else None
    return Result(
        best_source=files.kernel(best.candidate) if best and best.candidate else None,
        best_path=details.best_path,
        speedup=timing.speedup if timing else None,
        speedup_interval=(timing.speedup_low, timing.speedup_high) if timing else None,
        turns=tuple(sorted(files.turns(), key=lambda turn: turn.call)),
        run=result.run,
        details=details,
    )
