"""`python -m experiments.bench.kernelbench_runs SRC KERNELS PROBLEMS OUT`: KernelBench's verdicts.

KernelBench's own evaluator judges a folder of kernels several times, each in a fresh process, one
at a time, with another seed in each run. It has no walls: candidates run as the user.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluator.command.command_line import serve
from problems.errors import UsageError

app = typer.Typer(add_completion=False, rich_markup_mode=None)

FIRST_SEED = 42
"""KernelBench's own; each further run takes the next one."""
_READY = 4
"""Processes that import everything while others evaluate."""
_BUILD_LIMIT_S, _LIMIT_S = 300.0, 90.0


@app.command()
def run(
    source: Annotated[Path, typer.Argument(help="The folder src/ of KernelBench.")],
    kernels: Annotated[Path, typer.Argument(help="A folder of kernels named as there.")],
    problems: Annotated[Path, typer.Argument(help="Their problems, level1/1_name.py and so on.")],
    out: Annotated[Path, typer.Argument(help="JSON lines that are added to.")],
    runs: Annotated[int, typer.Option(help="How often each kernel is evaluated.")] = 5,
    builds: Annotated[
        int, typer.Option(help="Processes at a time in a first run, in which all is built.")
    ] = 4,
    scratch: Annotated[Path, typer.Option(help="Where builds go.")] = Path("build/kernelbench"),
) -> None:
    """Evaluate every kernel, and add a line for each evaluation to OUT."""
    if not (source / "kernelbench" / "eval.py").exists():
        raise UsageError(f"{source} holds no kernelbench/eval.py: name KernelBench's folder src")
    orders = list(_orders(kernels, problems, scratch))
    if not orders:
        raise UsageError(f"{kernels} holds no kernel named level_L_problem_N_..._kernel.py")
    with out.open("a") as file:

        def keep(order: dict[str, Any], found: dict[str, object]) -> None:
            told = {"kernel": Path(order["kernel"]).name, "seed": order["seed"], **found}
            file.write(json.dumps(told) + "\n")
            file.flush()

        with ThreadPoolExecutor(builds) as pool:
            first = [order | {"seed": FIRST_SEED - 1} for order in orders]
            asked = pool.map(lambda order: _asked(_started(source), order, _BUILD_LIMIT_S), first)
            for order, found in zip(first, asked, strict=True):
                keep(order, found | {"while_building": True})
        ready = deque(_started(source) for _ in range(min(_READY, len(orders))))
        try:
            for number in range(runs):
                for order in orders:
                    ready.append(_started(source))
                    seeded = order | {"seed": FIRST_SEED + number}
                    keep(seeded, _asked(ready.popleft(), seeded, _LIMIT_S))
                typer.echo(f"run {number + 1} of {runs} is done")
        finally:
            for process in ready:
                _end(process)


def _orders(kernels: Path, problems: Path, scratch: Path) -> Iterator[dict[str, Any]]:
    for kernel in sorted(kernels.glob("level_*_problem_*_kernel.py")):
        _, level, _, number, *_ = kernel.name.split("_")
        found = list(problems.glob(f"level{level}/{number}_*.py"))
        if len(found) != 1:
            raise UsageError(f"{problems} has no level{level}/{number}_*.py for {kernel.name}")
        yield {
            "kernel": str(kernel.resolve()),
            "problem": str(found[0].resolve()),
            "builds": str(scratch.resolve()),
        }


def _started(source: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "experiments.bench.suites.kernelbench_process",
            str(source.resolve()),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def _asked(
    process: subprocess.Popen[str], order: dict[str, Any], limit_s: float
) -> dict[str, object]:
    try:
        printed, _ = process.communicate(json.dumps(order) + "\n", limit_s)
        last = printed.rstrip().rpartition("\n")[2]
        found: dict[str, object] = json.loads(last)
        return found
    except subprocess.TimeoutExpired:
        return {"verdict": "hung", "told": f"more than {limit_s:g} s"}
    except ValueError:
        return {"verdict": "died", "told": f"exit code {process.returncode}"}
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.bench.kernelbench_runs"))
