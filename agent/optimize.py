"""The main job from Python: `optimize(problem, inputs=..., **options) -> Result`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.record.result import ProblemResult
from agent.record.turn import TurnRecord

PROBLEMS = Path("runs") / "problems"
"""Where problem files made from modules are kept, by class and hash."""


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
    redo: bool = False,
    display: str = "none",
    **options: Any,
) -> Result:
    """Find a fast kernel for one problem; goes on where an equal call was interrupted.

    `problem` is an id (`level1_7_rms_norm`), the path of a file in KernelBench's format, or an
    instance of an `nn.Module` class. An instance needs `inputs` (`agent.module_source` says which);
    its weights are not taken over, since a kernel must be right for any.

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
    from evaluator.errors import InfrastructureError

    reference = str(problem) if isinstance(problem, str | Path) else None
    if reference is None:
        reference = str(_written(problem, inputs))
    resolution = resolve(check_options({**options, "problems": [reference]}))
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


def _written(module: object, inputs: Any) -> Path:
    """The problem file of a module; the same module and inputs give the same file."""
    from agent.module_source import problem_source

    source = problem_source(module, inputs)
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    path = PROBLEMS / f"{type(module).__name__}_{digest}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return path
