"""`python -m evaluator.walls.survey`: which walls a worker gets on this machine, as JSON.

A worker is confined and every wall attacked, as the judge's zygote does at its start, but without
torch: it takes a fraction of a second.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import traceback
from pathlib import Path
from typing import NoReturn

from evaluator.walls import memory_group
from evaluator.walls.bait import Bait, bait
from evaluator.walls.demands import missing, rejection
from evaluator.walls.environment import clean_environment, python_module, python_path
from evaluator.walls.layers import enclose, run_against
from evaluator.walls.namespaces import can_fork_apart, fork_apart
from problems.errors import UsageError

_TIMEOUT_S = 30.0
_MEMORY_BYTES = 16 * 2**30


class SurveyError(Exception):
    """The survey itself failed; what it said."""


def survey() -> tuple[str, ...]:
    """The layers that held, found out in a process of its own; raises `SurveyError`."""
    command = python_module("evaluator.walls.survey")
    environment = os.environ | {"PYTHONPATH": python_path()}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            env=environment,
        )
        layers: list[str] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError) as error:
        raise SurveyError(str(error)) from None
    except ValueError:
        said = done.stderr.strip().splitlines() or ["it printed nothing"]
        raise SurveyError(said[-1]) from None
    return tuple(layers)


def insist(option: str = "--require-isolation strict") -> None:
    """Raise `UsageError`, one line with the remedy, unless strict isolation is possible here."""
    try:
        layers = survey()
    except SurveyError as error:
        raise UsageError(
            f"strict isolation: the walls of this machine can't be tried: {error}"
        ) from None
    if lacking := missing(layers):
        raise UsageError(rejection(lacking, option))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="refinery-") as name:
        scratch = Path(name) / "scratch"
        folder = Path(name) / "bait"
        Path(name).chmod(0o755)
        scratch.mkdir()
        folder.mkdir()
        outside = [memory_group.LAYER] if memory_group.tried() else []
        with bait(folder) as (laid, handle):
            child = os.fork()
            if child == 0:
                _be_zygote(laid, handle, scratch, outside)
            os.waitpid(child, 0)


def _be_zygote(laid: Bait, handle: int, scratch: Path, outside: list[str]) -> NoReturn:
    try:
        # A zygote begins with a clean environment.
        kept = clean_environment(scratch)
        os.environ.clear()
        os.environ.update(kept)
        layers = enclose(scratch.parent)
        if can_fork_apart():
            layers.append("pid_namespace")
        pid = fork_apart().pid if "pid_namespace" in layers else os.fork()
        if pid:
            os.waitpid(pid, 0)
            os._exit(0)
        held = run_against(
            laid, handle, scratch, memory_bytes=_MEMORY_BYTES, cpu_seconds=60, enclosed=layers
        )
        print(json.dumps([*held, *outside]), flush=True)
    except BaseException:  # noqa: BLE001 - the boundary of the process
        traceback.print_exc()
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
