"""`python -m experiments.bench.cuda_l1 h100.json FOLDER`: CUDA-L1's published kernels, judged.

The file is one of `optimized_cuda_code/` in their repository. Each line is a task in JSON: its
source, the kernel, and the claimed speedup over eager. Everything is written to the folder.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluator.command.command_line import serve
from problems.errors import UsageError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def judge(
    context: typer.Context,
    published: Annotated[Path, typer.Argument(help="A file of CUDA-L1's, such as h100.json.")],
    folder: Annotated[Path, typer.Argument(help="Where kernels, problems and results go.")],
    tasks: Annotated[str, typer.Option(help="odd, even or all task numbers.")] = "all",
) -> None:
    """Write the kernels, their problems and claims to FOLDER and judge them with
    `evaluator.check`, which gets all further options (--device, --timing-seconds, --protocol)."""
    if tasks not in ("odd", "even", "all"):
        raise UsageError(f"--tasks {tasks}: choose odd, even or all")
    found = [task for task in _tasks(published) if tasks in ("all", _parity(task))]
    write(found, folder)
    command = [sys.executable, "-m", "evaluator.check", str(folder / "kernels")]
    command += ["--suite", str(folder / "problems"), "--claims", str(folder / "claims.csv")]
    raise typer.Exit(subprocess.run([*command, *context.args], check=False).returncode)


def write(tasks: list[dict[str, Any]], folder: Path) -> None:
    """Write those tasks that have a kernel, named as KernelBench names them."""
    claims = []
    for task in tasks:
        level, number = task["level_id"], task["task_id"]
        if not task["custom_code"]:
            continue
        problems = folder / "problems" / f"level{level}"
        problems.mkdir(parents=True, exist_ok=True)
        (problems / f"{number}_task.py").write_text(task["ref_code"])
        kernels = folder / "kernels"
        kernels.mkdir(exist_ok=True)
        name = f"level_{level}_problem_{number}_sample_0_kernel.py"
        (kernels / name).write_text(task["custom_code"])
        if task["score_default"]:
            claims.append((level, number, task["score_default"]))
    if not claims:
        raise UsageError("no task with a kernel and a claim is left")
    with (folder / "claims.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("level", "task", "claimed"), *claims])


def _tasks(published: Path) -> list[dict[str, Any]]:
    try:
        tasks = [json.loads(line) for line in published.read_text().splitlines() if line.strip()]
        keys = {"level_id", "task_id", "ref_code", "custom_code", "score_default"}
        if all(keys <= task.keys() for task in tasks):
            return tasks
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(f"{published} can't be read: {error}") from None
    raise UsageError(
        f"{published} is not a file of CUDA-L1: each line needs {', '.join(sorted(keys))}"
    )


def _parity(task: dict[str, Any]) -> str:
    return "odd" if task["task_id"] % 2 else "even"


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.bench.cuda_l1"))
