"""Our commands run as a person runs them."""

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

import pytest

from evaluator.command.command_line import serve
from experiments.export.__main__ import app

ROOT = Path(__file__).resolve().parents[1]
READERS = (
    "experiments.compact",
    "experiments.compare",
    "experiments.export",
    "experiments.report",
)
"""Commands that start no process and judge nothing: they read what was recorded."""


def command(
    module: str, *words: object, cwd: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`python -m module words...`, from the repository's root if nothing else is said.

    One of `READERS` runs in this process, unless it needs a folder or an environment of its own: a
    new process would take seconds to import what is imported here. `test_command_lines.py` starts
    each of them as a process.
    """
    if module in READERS and not environment and cwd == ROOT:
        return _read(module, *map(str, words))
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", module, *map(str, words)],
        cwd=cwd,
        env=os.environ
        | {"OMP_NUM_THREADS": "1", "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
        | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def refused(module: str, *words: object) -> str:
    """The one line on stderr of a command that must be refused with exit code 2."""
    done = command(module, *words)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]


def _read(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    with (
        pytest.MonkeyPatch.context() as patch,
        chdir(ROOT),
        redirect_stdout(io.TextIOWrapper(io.BytesIO(), write_through=True)) as out,
        redirect_stderr(io.StringIO()) as errors,
    ):
        patch.setenv("COLUMNS", "200")
        served = app if module == "experiments.export" else import_module(module).command
        code = serve(served, f"python -m {module}", list(words))
    printed = out.buffer.getvalue().decode()
    return subprocess.CompletedProcess([module, *words], code, printed, errors.getvalue())
